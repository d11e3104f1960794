package peer;

import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.ReaderOutput;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource.NumberSequenceSplit;
import org.apache.flink.core.io.InputStatus;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/**
 * Emits events from memory. Splits are there only because the interface wants them.
 *
 * <p>Either each task emits its lane, or all tasks take rows from one queue. With the queue no task gets ahead of the
 * others; if one did, the matchers would have to keep its events until the watermarks of the others follow, and the
 * time that Flink CEP takes for an event grows with the number it keeps.
 */
final class MemorySource implements Source<Event, NumberSequenceSplit, Collection<NumberSequenceSplit>> {
    private static final long serialVersionUID = 1;
    private static final int ROWS_AT_ONCE = 256;

    private static volatile int[][] lanes;
    private static volatile int queued;
    private static final AtomicInteger QUEUE = new AtomicInteger();
    /** When the first event of the running job was emitted, in the nanoseconds of System.nanoTime(). */
    static final AtomicLong BEGIN = new AtomicLong();

    /** The processor time of all threads until then. */
    static final AtomicLong BEGIN_BUSY = new AtomicLong();

    private final NumberSequenceSource splits;

    MemorySource(int parallelism) {
        splits = new NumberSequenceSource(0, parallelism - 1);
    }

    /** Prepare for a job over the first so many rows. */
    static void prepare(int rows, int parallelism, boolean hasLanes) {
        lanes = hasLanes ? Events.lanes(rows, parallelism) : null;
        queued = rows;
        QUEUE.set(0);
        BEGIN.set(0);
    }

    @Override
    public Boundedness getBoundedness() {
        return Boundedness.BOUNDED;
    }

    @Override
    public SplitEnumerator<NumberSequenceSplit, Collection<NumberSequenceSplit>> createEnumerator(
            SplitEnumeratorContext<NumberSequenceSplit> context) {
        return splits.createEnumerator(context);
    }

    @Override
    public SplitEnumerator<NumberSequenceSplit, Collection<NumberSequenceSplit>> restoreEnumerator(
            SplitEnumeratorContext<NumberSequenceSplit> context, Collection<NumberSequenceSplit> checkpoint) {
        return splits.restoreEnumerator(context, checkpoint);
    }

    @Override
    public SimpleVersionedSerializer<NumberSequenceSplit> getSplitSerializer() {
        return splits.getSplitSerializer();
    }

    @Override
    public SimpleVersionedSerializer<Collection<NumberSequenceSplit>> getEnumeratorCheckpointSerializer() {
        return splits.getEnumeratorCheckpointSerializer();
    }

    @Override
    public SourceReader<Event, NumberSequenceSplit> createReader(SourceReaderContext context) {
        return new Reader(lanes == null ? null : lanes[context.getIndexOfSubtask()]);
    }

    /** Walks once over its lane or the queue, with one event object that it fills anew for each row. */
    private static final class Reader implements SourceReader<Event, NumberSequenceSplit> {
        private final int[] lane;
        private final Event event = new Event();
        private int next;

        Reader(int[] lane) {
            this.lane = lane;
        }

        @Override
        public void start() {
            if (BEGIN.compareAndSet(0, System.nanoTime())) {
                BEGIN_BUSY.set(FlinkPeer.SYSTEM.getProcessCpuTime());
            }
        }

        @Override
        public InputStatus pollNext(ReaderOutput<Event> output) {
            int length = lane == null ? queued : lane.length;
            int begin = lane == null ? QUEUE.getAndAdd(ROWS_AT_ONCE) : next;
            next = Math.min(length, begin + ROWS_AT_ONCE);
            for (int n = begin; n < next; n++) {
                int row = lane == null ? n : lane[n];
                long time = Events.times[row];
                Event.set(event, row, Events.types[row], Events.objects[row], time, Events.values[row]);
                output.collect(event, time);
            }
            return next < length ? InputStatus.MORE_AVAILABLE : InputStatus.END_OF_INPUT;
        }

        @Override
        public List<NumberSequenceSplit> snapshotState(long checkpoint) {
            return List.of();
        }

        @Override
        public CompletableFuture<Void> isAvailable() {
            return CompletableFuture.completedFuture(null);
        }

        @Override
        public void addSplits(List<NumberSequenceSplit> added) {}

        @Override
        public void notifyNoMoreSplits() {}

        @Override
        public void close() {}
    }
}
