package peer;

import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
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

/** Emits events from memory: each task its lane. Splits are there only because the interface wants them. */
final class MemorySource implements Source<Event, NumberSequenceSplit, Collection<NumberSequenceSplit>> {
    private static final long serialVersionUID = 1;
    private static final int ROWS_AT_ONCE = 256;

    static volatile int[][] lanes;
    /** When the first event of the running job was emitted, in the nanoseconds of System.nanoTime(). */
    static final AtomicLong BEGIN = new AtomicLong();

    private final NumberSequenceSource splits;

    MemorySource(int parallelism) {
        splits = new NumberSequenceSource(0, parallelism - 1);
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
        return new Reader(lanes[context.getIndexOfSubtask()]);
    }

    /** Walks once over its lane, with one event object that it fills anew for each row. */
    private static final class Reader implements SourceReader<Event, NumberSequenceSplit> {
        private final int[] rows;
        private final Event event = new Event();
        private int next;

        Reader(int[] rows) {
            this.rows = rows;
        }

        @Override
        public void start() {
            BEGIN.compareAndSet(0, System.nanoTime());
        }

        @Override
        public InputStatus pollNext(ReaderOutput<Event> output) {
            int end = Math.min(rows.length, next + ROWS_AT_ONCE);
            for (; next < end; next++) {
                int row = rows[next];
                long time = Events.times[row];
                Event.set(event, row, Events.types[row], Events.objects[row], time, Events.values[row]);
                output.collect(event, time);
            }
            return next < rows.length ? InputStatus.MORE_AVAILABLE : InputStatus.END_OF_INPUT;
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
