package peer;

import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import oracle.Patterns;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.StateBackendOptions;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.runtime.util.EnvironmentInformation;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.DataStreamUtils;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

/**
 * Runs patterns on Flink CEP, one job for each line of standard input, and says how long each took.
 *
 * <p>A line is {@code pattern window lateness variant parallelism rows watermarks out}: the pattern ({@code sequence},
 * {@code absence} or a file with a pattern of steps in JSON), its length and the lateness in milliseconds, the variant (see {@link #matcherInput}), the
 * number of rows to take from the input, how often watermarks are sent in milliseconds, and a file for the matches or
 * {@code -}. The answer is {@code peer seconds busy}, with the processor time of all threads.
 */
public final class FlinkPeer {
    static final OperatingSystemMXBean SYSTEM =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private static final byte A = 0;
    private static final byte B = 1;
    private static final byte C = 2;

    private FlinkPeer() {}

    public static void main(String[] args) throws Exception {
        Events.load(Path.of(args[0]));
        System.out.println("peer ready " + EnvironmentInformation.getVersion());
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            int parallelism = Integer.parseInt(words[4]);
            MemorySource.prepare(Integer.parseInt(words[5]), parallelism, words[3].equals("chained"));
            MatchSink.clear();
            System.gc();
            run(job(words[0], Long.parseLong(words[1])), Long.parseLong(words[2]), words[3], parallelism,
                    Long.parseLong(words[6]));
            if (!words[7].equals("-")) {
                MatchSink.write(Path.of(words[7]));
            }
            double seconds = (MatchSink.END.get() - MemorySource.BEGIN.get()) / 1e9;
            double busy = (MatchSink.END_BUSY.get() - MemorySource.BEGIN_BUSY.get()) / 1e9;
            System.out.println("peer " + seconds + " " + busy);
        }
    }

    /** What to look for, and what to tell of it. */
    private record Job(Pattern<Event, ?> pattern, PatternProcessFunction<Event, int[]> rows) {}

    private static Job job(String pattern, long window) throws IOException {
        if (!pattern.endsWith(".json")) {
            return new Job(pattern(pattern, window), new RowsOfMatch());
        }
        JsonNode file = new ObjectMapper().readTree(Path.of(pattern).toFile());
        return new Job(
                Patterns.build(file.get("pattern"), new NumberConditions(names(file.get("types")))),
                new RowsOfSteps(names(file.get("steps"))));
    }

    private static ArrayList<String> names(JsonNode list) {
        ArrayList<String> names = new ArrayList<>();
        list.forEach(name -> names.add(name.asText()));
        return names;
    }

    private static void run(Job job, long lateness, String variant, int parallelism, long watermarks)
            throws Exception {
        Configuration settings = new Configuration();
        settings.set(StateBackendOptions.STATE_BACKEND, "hashmap");
        settings.set(TaskManagerOptions.NETWORK_MEMORY_MIN, MemorySize.ofMebiBytes(128));
        settings.set(TaskManagerOptions.NETWORK_MEMORY_MAX, MemorySize.ofMebiBytes(128));
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(parallelism, settings);
        env.setRuntimeMode(variant.equals("batch") ? RuntimeExecutionMode.BATCH : RuntimeExecutionMode.STREAMING);
        env.getConfig().enableObjectReuse();
        env.getConfig().setAutoWatermarkInterval(watermarks);
        SingleOutputStreamOperator<Event> events = env.fromSource(
                new MemorySource(parallelism),
                WatermarkStrategy.forBoundedOutOfOrderness(Duration.ofMillis(lateness)),
                "events",
                new Event.Info());
        CEP.pattern(matcherInput(events, variant), job.pattern())
                .process(job.rows(), PrimitiveArrayTypeInfo.INT_PRIMITIVE_ARRAY_TYPE_INFO)
                .sinkTo(new MatchSink());
        env.execute();
    }

    /**
     * Bring the events to the matcher.
     *
     * <ul>
     *   <li>{@code plain}: all events, spread by object;
     *   <li>{@code filtered}, {@code batch}: only those whose type the pattern names;
     *   <li>{@code chained}: the same without an exchange between tasks, since the source is laid out by object
     *       already; the matcher runs in the thread of the source, and no event is ever serialized.
     * </ul>
     */
    private static KeyedStream<Event, Integer> matcherInput(
            SingleOutputStreamOperator<Event> events, String variant) {
        if (variant.equals("plain")) {
            return events.keyBy(event -> event.object, Types.INT);
        }
        SingleOutputStreamOperator<Event> some = events.filter(event -> event.type <= C);
        if (variant.equals("chained")) {
            return DataStreamUtils.reinterpretAsKeyedStream(
                    some.map(Event::copy).returns(new Event.Info()), event -> event.object, Types.INT);
        }
        return some.keyBy(event -> event.object, Types.INT);
    }

    /** Flink's windows do not hold their last instant, Whimbrel's do: one millisecond more makes them the same. */
    private static Pattern<Event, ?> pattern(String name, long window) {
        Duration within = Duration.ofMillis(window + 1);
        Pattern<Event, ?> begin = Pattern.<Event>begin("a").where(SimpleCondition.of(event -> event.type == A));
        if (name.equals("absence")) {
            return begin.notFollowedBy("b").where(SimpleCondition.of(event -> event.type == B)).within(within);
        }
        return begin.followedByAny("b")
                .where(new HigherThanA())
                .followedByAny("c")
                .where(SimpleCondition.of(event -> event.type == C))
                .within(within);
    }

    private static final class HigherThanA extends IterativeCondition<Event> {
        private static final long serialVersionUID = 1;

        @Override
        public boolean filter(Event event, Context<Event> context) throws Exception {
            return event.type == B
                    && event.value > context.getEventsForPattern("a").iterator().next().value;
        }
    }

    private static final class RowsOfMatch extends PatternProcessFunction<Event, int[]> {
        private static final long serialVersionUID = 1;

        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<int[]> out) {
            List<Event> b = match.get("b");
            int a = match.get("a").get(0).row;
            out.collect(b == null ? new int[] {a} : new int[] {a, b.get(0).row, match.get("c").get(0).row});
        }
    }

    /** Gives the number of the numbers that follow; then for each step how many events it took, and their rows. */
    private static final class RowsOfSteps extends PatternProcessFunction<Event, int[]> {
        private static final long serialVersionUID = 1;

        private final ArrayList<String> steps;

        RowsOfSteps(ArrayList<String> steps) {
            this.steps = steps;
        }

        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<int[]> out) {
            int length = 1 + steps.size();
            for (List<Event> taken : match.values()) {
                length += taken.size();
            }
            int[] numbers = new int[length];
            int next = 0;
            numbers[next++] = length - 1;
            for (String step : steps) {
                List<Event> taken = match.getOrDefault(step, List.of());
                numbers[next++] = taken.size();
                for (Event event : taken) {
                    numbers[next++] = event.row;
                }
            }
            out.collect(numbers);
        }
    }
}
