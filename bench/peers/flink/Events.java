package peer;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.Arrays;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;

/** The input, in memory as plain arrays, so that no job spends time on reading or parsing. */
final class Events {
    static byte[] types;
    static int[] objects;
    static long[] times;
    static double[] values;

    private Events() {}

    /** Read the file that the driver wrote: the number of rows, then the columns, one after the other. */
    static void load(Path path) throws IOException {
        try (FileChannel file = FileChannel.open(path)) {
            int rows = column(file, 0, Integer.BYTES).getInt();
            long at = Integer.BYTES;
            types = new byte[rows];
            column(file, at, rows).get(types);
            at += rows;
            objects = new int[rows];
            column(file, at, (long) rows * Integer.BYTES).asIntBuffer().get(objects);
            at += (long) rows * Integer.BYTES;
            times = new long[rows];
            column(file, at, (long) rows * Long.BYTES).asLongBuffer().get(times);
            at += (long) rows * Long.BYTES;
            values = new double[rows];
            column(file, at, (long) rows * Double.BYTES).asDoubleBuffer().get(values);
        }
    }

    private static ByteBuffer column(FileChannel file, long at, long size) throws IOException {
        return file.map(FileChannel.MapMode.READ_ONLY, at, size).order(ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * Deal out the first so many rows to lanes, each in order: a lane has the objects that Flink's own hashing gives to
     * the matcher task of the same number, as a topic would be partitioned that was laid out for this job.
     */
    static int[][] lanes(int rows, int parallelism) {
        int[][] lanes = new int[parallelism][rows];
        int[] lengths = new int[parallelism];
        for (int row = 0; row < rows; row++) {
            int lane = KeyGroupRangeAssignment.assignKeyToParallelOperator(
                    objects[row], KeyGroupRangeAssignment.DEFAULT_LOWER_BOUND_MAX_PARALLELISM, parallelism);
            lanes[lane][lengths[lane]++] = row;
        }
        for (int lane = 0; lane < parallelism; lane++) {
            lanes[lane] = Arrays.copyOf(lanes[lane], lengths[lane]);
        }
        return lanes;
    }
}
