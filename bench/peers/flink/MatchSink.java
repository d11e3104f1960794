package peer;

import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;

/** Keeps the matches of a job in memory: the rows of their events, one match after the other. */
final class MatchSink implements Sink<int[]> {
    private static final long serialVersionUID = 1;

    private static final List<Writer> WRITERS = new ArrayList<>();
    /** When the last task had seen its last match. */
    static final AtomicLong END = new AtomicLong();

    /** The processor time of all threads until then. */
    static final AtomicLong END_BUSY = new AtomicLong();

    static synchronized void clear() {
        WRITERS.clear();
        END.set(0);
        END_BUSY.set(0);
    }

    /** Write the numbers to a file, as big-endian ints. */
    static synchronized void write(Path path) throws IOException {
        try (DataOutputStream file = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(path)))) {
            for (Writer writer : WRITERS) {
                for (int n = 0; n < writer.size; n++) {
                    file.writeInt(writer.numbers[n]);
                }
            }
        }
    }

    private static synchronized Writer register(Writer writer) {
        WRITERS.add(writer);
        return writer;
    }

    @Override
    public SinkWriter<int[]> createWriter(WriterInitContext context) {
        return register(new Writer());
    }

    private static final class Writer implements SinkWriter<int[]> {
        private int[] numbers = new int[1 << 16];
        private int size;

        @Override
        public void write(int[] rows, Context context) {
            if (size + rows.length > numbers.length) {
                numbers = Arrays.copyOf(numbers, 2 * numbers.length + rows.length);
            }
            for (int row : rows) {
                numbers[size++] = row;
            }
        }

        @Override
        public void flush(boolean isEndOfInput) {
            if (isEndOfInput) {
                END.accumulateAndGet(System.nanoTime(), Math::max);
                END_BUSY.accumulateAndGet(FlinkPeer.SYSTEM.getProcessCpuTime(), Math::max);
            }
        }

        @Override
        public void close() {}
    }
}
