import java.io.BufferedReader;
import java.io.DataOutputStream;
import java.io.BufferedOutputStream;
import java.io.InputStreamReader;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.JoinFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.api.java.tuple.Tuple6;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.legacy.RichSinkFunction;
import org.apache.flink.streaming.api.functions.sink.legacy.SinkFunction;
import org.apache.flink.streaming.api.functions.source.legacy.RichParallelSourceFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessAllWindowFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.EventTimeSessionWindows;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/**
 * The questions of queries.py on Flink's DataStream API, in a cluster inside this JVM.
 *
 * <p>Arguments: file of events, query, state backend, parallelism, delay of the watermark, size and slide (or gap) of
 * the window, ms, "copy" or "reuse" for the objects on their way between operators, and the file of each ad's campaign.
 * Each line on standard input runs the job once; the line is a path for the results, or "-". Each run answers with a line: seconds from the first event that a source read to the last thing that a sink did.
 */
public class FlinkJob {
    /** How many events a source takes before the other one's turn comes. */
    static final int BLOCK = 1024;

    static final AtomicLong first = new AtomicLong();
    static final AtomicLong last = new AtomicLong();
    static final List<Kept> kept = new ArrayList<>();

    /** A bid: auction, bidder, price, time. */
    public static class Bid extends Tuple4<Long, Long, Long, Long> {
        public Bid() {}

        public Bid(long auction, long bidder, long price, long ts) {
            super(auction, bidder, price, ts);
        }
    }

    /** Longs of one sink, rows one behind the other. */
    static class Kept {
        long[] values = new long[1 << 16];
        int size = 0;

        void add(long value) {
            if (size == values.length) {
                values = Arrays.copyOf(values, 2 * size);
            }
            values[size++] = value;
        }
    }

    /** Reads blocks of a mapped file, in turns with the other instances. */
    public static class Source extends RichParallelSourceFunction<Bid> {
        private final String path;

        public Source(String path) {
            this.path = path;
        }

        @Override
        public void run(SourceContext<Bid> context) throws Exception {
            int mine = getRuntimeContext().getTaskInfo().getIndexOfThisSubtask();
            int all = getRuntimeContext().getTaskInfo().getNumberOfParallelSubtasks();
            try (FileChannel channel = FileChannel.open(Path.of(path), StandardOpenOption.READ)) {
                MappedByteBuffer mapped = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
                LongBuffer longs = mapped.order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
                int events = longs.limit() / 4;
                first.compareAndSet(0, System.nanoTime());
                for (long start = (long) mine * BLOCK; start < events; start += (long) all * BLOCK) {
                    int end = (int) Math.min(start + BLOCK, events);
                    synchronized (context.getCheckpointLock()) {
                        for (int at = (int) start; at < end; at++) {
                            int p = 4 * at;
                            context.collect(new Bid(longs.get(p), longs.get(p + 1), longs.get(p + 2), longs.get(p + 3)));
                        }
                    }
                }
            }
        }

        @Override
        public void cancel() {}
    }

    /** Keeps what comes in an array. */
    public static class Sink extends RichSinkFunction<Tuple6<Long, Long, Long, Long, Long, Long>> {
        private final int columns;
        private transient Kept mine;

        public Sink(int columns) {
            this.columns = columns;
        }

        @Override
        public void open(OpenContext context) {
            mine = new Kept();
            synchronized (kept) {
                kept.add(mine);
            }
        }

        @Override
        public void invoke(Tuple6<Long, Long, Long, Long, Long, Long> row, SinkFunction.Context context) {
            for (int column = 0; column < columns; column++) {
                mine.add(row.<Long>getField(column));
            }
        }

        @Override
        public void finish() {
            last.accumulateAndGet(System.nanoTime(), Math::max);
        }
    }

    /** Count, sum, min and max of the price. */
    public static class Four implements AggregateFunction<Bid, Tuple4<Long, Long, Long, Long>, Tuple4<Long, Long, Long, Long>> {
        @Override
        public Tuple4<Long, Long, Long, Long> createAccumulator() {
            return Tuple4.of(0L, 0L, Long.MAX_VALUE, Long.MIN_VALUE);
        }

        @Override
        public Tuple4<Long, Long, Long, Long> add(Bid bid, Tuple4<Long, Long, Long, Long> sums) {
            sums.f0 += 1;
            sums.f1 += bid.f2;
            sums.f2 = Math.min(sums.f2, bid.f2);
            sums.f3 = Math.max(sums.f3, bid.f2);
            return sums;
        }

        @Override
        public Tuple4<Long, Long, Long, Long> getResult(Tuple4<Long, Long, Long, Long> sums) {
            return sums;
        }

        @Override
        public Tuple4<Long, Long, Long, Long> merge(Tuple4<Long, Long, Long, Long> a, Tuple4<Long, Long, Long, Long> b) {
            return Tuple4.of(a.f0 + b.f0, a.f1 + b.f1, Math.min(a.f2, b.f2), Math.max(a.f3, b.f3));
        }
    }

    /** Puts the campaign in place of the ad, which is the bidder of a bid. */
    public static class Campaign extends RichMapFunction<Bid, Bid> {
        private final String path;
        private transient Map<Long, Long> campaigns;

        public Campaign(String path) {
            this.path = path;
        }

        @Override
        public void open(OpenContext context) throws Exception {
            campaigns = new HashMap<>();
            try (FileChannel channel = FileChannel.open(Path.of(path), StandardOpenOption.READ)) {
                MappedByteBuffer mapped = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
                LongBuffer longs = mapped.order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
                while (longs.hasRemaining()) {
                    campaigns.put(longs.get(), longs.get());
                }
            }
        }

        @Override
        public Bid map(Bid bid) {
            return new Bid(bid.f0, campaigns.get(bid.f1), bid.f2, bid.f3);
        }
    }

    /** The number of bids. */
    public static class Count implements AggregateFunction<Bid, Long, Long> {
        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(Bid bid, Long count) {
            return count + 1;
        }

        @Override
        public Long getResult(Long count) {
            return count;
        }

        @Override
        public Long merge(Long a, Long b) {
            return a + b;
        }
    }

    /** Results with their key and window: key, start, n, sum, min, max. */
    public static class WithFour
            extends ProcessWindowFunction<
                    Tuple4<Long, Long, Long, Long>, Tuple6<Long, Long, Long, Long, Long, Long>, Long, TimeWindow> {
        @Override
        public void process(
                Long key,
                Context context,
                Iterable<Tuple4<Long, Long, Long, Long>> found,
                Collector<Tuple6<Long, Long, Long, Long, Long, Long>> out) {
            Tuple4<Long, Long, Long, Long> one = found.iterator().next();
            out.collect(Tuple6.of(key, context.window().getStart(), one.f0, one.f1, one.f2, one.f3));
        }
    }

    /** A count with its key and window: key, start, n, end. */
    public static class WithCount
            extends ProcessWindowFunction<Long, Tuple6<Long, Long, Long, Long, Long, Long>, Long, TimeWindow> {
        @Override
        public void process(
                Long key,
                Context context,
                Iterable<Long> found,
                Collector<Tuple6<Long, Long, Long, Long, Long, Long>> out) {
            TimeWindow window = context.window();
            out.collect(Tuple6.of(key, window.getStart(), found.iterator().next(), window.getEnd(), 0L, 0L));
        }
    }

    static DataStream<Tuple6<Long, Long, Long, Long, Long, Long>> ask(
            DataStream<Bid> bids, String query, Duration size, Duration slide, String ads) {
        KeySelector<Bid, Long> bidder = bid -> bid.f1;
        KeySelector<Bid, Long> auction = bid -> bid.f0;
        switch (query) {
            case "tumbling":
                return bids.keyBy(bidder).window(TumblingEventTimeWindows.of(size)).aggregate(new Four(), new WithFour());
            case "q12":
                return bids.keyBy(bidder).window(TumblingEventTimeWindows.of(size)).aggregate(new Count(), new WithCount());
            case "q8":
                return bids.filter(bid -> bid.f2 % 10 == 0 || bid.f2 < 0)
                        .join(bids.filter(bid -> (bid.f2 % 10 >= 1 && bid.f2 % 10 <= 3) || bid.f2 < 0))
                        .where(bidder)
                        .equalTo(bidder)
                        .window(TumblingEventTimeWindows.of(size))
                        .apply(new Seller(size.toMillis()));
            case "yahoo":
                return bids.filter(bid -> bid.f2 % 3 != 0)
                        .map(new Campaign(ads))
                        .keyBy(bidder)
                        .window(TumblingEventTimeWindows.of(size))
                        .aggregate(new Count(), new WithCount());
            case "q11":
                return bids.keyBy(bidder).window(EventTimeSessionWindows.withGap(size)).aggregate(new Count(), new WithCount());
            case "q5":
                // The counts of a window have its last millisecond for their time: one window of a slide has them all.
                return bids.keyBy(auction)
                        .window(SlidingEventTimeWindows.of(size, slide))
                        .aggregate(new Count(), new WithCount())
                        .windowAll(TumblingEventTimeWindows.of(slide))
                        .reduce((a, b) -> a.f2 > b.f2 || (a.f2.equals(b.f2) && a.f0 < b.f0) ? a : b);
            case "q7":
                return bids.windowAll(TumblingEventTimeWindows.of(size))
                        .reduce((a, b) -> a.f2 >= b.f2 ? a : b, new WithWindow());
            default:
                throw new IllegalArgumentException("no query of the name " + query);
        }
    }

    /** One who registered and opened an auction in the same window: key, start, price, auction. */
    public static class Seller implements JoinFunction<Bid, Bid, Tuple6<Long, Long, Long, Long, Long, Long>> {
        private final long size;

        public Seller(long size) {
            this.size = size;
        }

        @Override
        public Tuple6<Long, Long, Long, Long, Long, Long> join(Bid registration, Bid opening) {
            long start = registration.f3 - registration.f3 % size;
            return Tuple6.of(registration.f1, start, registration.f2, opening.f0, 0L, 0L);
        }
    }

    /** A bid with its window: auction, start, price, bidder. */
    public static class WithWindow
            extends ProcessAllWindowFunction<Bid, Tuple6<Long, Long, Long, Long, Long, Long>, TimeWindow> {
        @Override
        public void process(
                Context context, Iterable<Bid> found, Collector<Tuple6<Long, Long, Long, Long, Long, Long>> out) {
            Bid bid = found.iterator().next();
            out.collect(Tuple6.of(bid.f0, context.window().getStart(), bid.f2, bid.f1, 0L, 0L));
        }
    }

    static int columns(String query) {
        switch (query) {
            case "tumbling":
                return 6;
            case "q11":
            case "q7":
            case "q8":
                return 4;
            default:
                return 3;
        }
    }

    static void write(String path) throws Exception {
        try (DataOutputStream out = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(Path.of(path)), 1 << 20))) {
            for (Kept one : kept) {
                for (int at = 0; at < one.size; at++) {
                    out.writeLong(Long.reverseBytes(one.values[at]));
                }
            }
        }
    }

    public static void main(String[] given) throws Exception {
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in));
        for (String target = asked.readLine(); target != null; target = asked.readLine()) {
            kept.clear();
            first.set(0);
            last.set(0);
            Configuration settings = new Configuration();
            settings.setString("state.backend.type", given[2]);
            StreamExecutionEnvironment env =
                    StreamExecutionEnvironment.createLocalEnvironment(Integer.parseInt(given[3]), settings);
            if (given[7].equals("reuse")) {
                env.getConfig().enableObjectReuse();
            }
            WatermarkStrategy<Bid> watermarks =
                    WatermarkStrategy.<Bid>forBoundedOutOfOrderness(Duration.ofMillis(Long.parseLong(given[4])))
                            .withTimestampAssigner((bid, before) -> bid.f3);
            DataStream<Bid> bids =
                    env.addSource(new Source(given[0])).returns(Bid.class).assignTimestampsAndWatermarks(watermarks);
            ask(bids, given[1], Duration.ofMillis(Long.parseLong(given[5])), Duration.ofMillis(Long.parseLong(given[6])), given[8])
                    .addSink(new Sink(columns(given[1])));
            env.execute(given[1]);
            if (!target.equals("-")) {
                write(target);
            }
            System.out.println("{\"seconds\": " + (last.get() - first.get()) / 1e9 + "}");
            System.out.flush();
        }
    }
}
