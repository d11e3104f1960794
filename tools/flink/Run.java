package oracle;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.cep.nfa.NFA;
import org.apache.flink.cep.nfa.NFAState;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBuffer;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBufferAccessor;

/** Flink's automaton over the events of one key, called as Flink's operator calls it in event time. */
@SuppressWarnings("try") // javac warns of an accessor whose close() may be interrupted; nothing interrupts here
final class Run {
    /** Flink asks for a serializer when it declares its state; state in memory is never written. */
    private static final TypeSerializer<Event> UNUSED =
            TypeInformation.of(Event.class).createSerializer(new SerializerConfigImpl());

    private final NFA<Event> automaton;
    private final AfterMatchSkipStrategy skip;
    private final Answer answer;
    private final SharedBuffer<Event> buffer = new SharedBuffer<>(new MemoryStore(), UNUSED);
    private final NFAState state;
    private boolean begun;
    private long time;

    Run(NFA<Event> automaton, AfterMatchSkipStrategy skip, Answer answer) {
        this.automaton = automaton;
        this.skip = skip;
        this.answer = answer;
        this.state = automaton.createInitialNFAState();
        buffer.releaseCacheStatisticsTimer(); // else a thread a key stays
    }

    void process(Event event) throws Exception {
        if (!begun || event.time() > time) {
            begun = true;
            time = event.time();
            advance(time);
        }
        try (SharedBufferAccessor<Event> accessor = buffer.getAccessor()) {
            Collection<Map<String, List<Event>>> found =
                    automaton.process(accessor, state, event, time, skip, () -> 0L);
            found.forEach(answer::addMatch);
        }
    }

    void end() throws Exception {
        advance(Long.MAX_VALUE);
    }

    private void advance(long to) throws Exception {
        try (SharedBufferAccessor<Event> accessor = buffer.getAccessor()) {
            Tuple2<Collection<Map<String, List<Event>>>, Collection<Tuple2<Map<String, List<Event>>, Long>>> found =
                    automaton.advanceTime(accessor, state, to, skip);
            found.f0.forEach(answer::addMatch);
            found.f1.forEach(timeout -> answer.addTimeout(timeout.f0, timeout.f1));
        }
    }
}
