package oracle;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.cep.nfa.NFA;
import org.apache.flink.cep.nfa.compiler.NFACompiler;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/**
 * Answers what Flink's CEP finds: a request a line on standard input, an answer a line on standard output.
 *
 * <p>A request is {"pattern": ..., "events": [...]}, its conditions given as trees. No job is started:
 * Flink's compiler of patterns and its automaton are called directly.
 */
public final class Oracle {
    private Oracle() {}

    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(json.readTree(line)));
        }
    }

    // A pattern may also send Flink into endless recursion; that is an answer too.
    private static Answer answer(JsonNode request) {
        try {
            return run(request);
        } catch (Exception | StackOverflowError error) {
            return Answer.refusal(error);
        }
    }

    private static Answer run(JsonNode request) throws Exception {
        Pattern<Event, Event> pattern = Patterns.build(request.get("pattern"), Condition.ALL);
        NFA<Event> automaton = NFACompiler.<Event>compileFactory(pattern, true).createNFA();
        List<String> key = new ArrayList<>();
        request.get("pattern").path("key").forEach(name -> key.add(name.asText()));

        Answer answer = new Answer();
        Map<List<Object>, Run> runs = new LinkedHashMap<>();
        for (Event event : inOrder(request.get("events"))) {
            runs.computeIfAbsent(
                            event.key(key),
                            unused -> new Run(automaton, pattern.getAfterMatchSkipStrategy(), answer))
                    .process(event);
        }
        for (Run run : runs.values()) {
            run.end();
        }
        return answer;
    }

    private static List<Event> inOrder(JsonNode nodes) {
        List<JsonNode> sorted = new ArrayList<>();
        nodes.forEach(sorted::add);
        sorted.sort(Comparator.comparingLong(node -> node.get("time").asLong())); // stable: equal times as given
        List<Event> events = new ArrayList<>();
        sorted.forEach(node -> events.add(Event.read(events.size(), node)));
        return events;
    }
}
