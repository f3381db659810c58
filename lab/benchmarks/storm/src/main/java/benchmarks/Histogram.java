package benchmarks;

import java.util.concurrent.atomic.AtomicLongArray;

/** Latencies in logarithmic buckets, as wide as those of storm_on_spark/runtime/reports/latency.py: 2^(1/16). */
final class Histogram {
    private static final int PER_DOUBLING = 16;
    private static final double LEAST_NS = 10_000;

    private final AtomicLongArray counts = new AtomicLongArray(32 * PER_DOUBLING);

    void add(long nanoseconds) {
        double doublings = Math.log(Math.max(nanoseconds, LEAST_NS) / LEAST_NS) / Math.log(2);
        counts.incrementAndGet(Math.min((int) (doublings * PER_DOUBLING), counts.length() - 1));
    }

    /** Returns the latency in ms below which so many percent lie; -1 without any. */
    double percentile(double percent) {
        long total = 0;
        for (int bucket = 0; bucket < counts.length(); bucket++) {
            total += counts.get(bucket);
        }
        double left = total * percent / 100;
        for (int bucket = 0; bucket < counts.length() && total > 0; bucket++) {
            left -= counts.get(bucket);
            if (left <= 0) {
                return LEAST_NS / 1e6 * Math.pow(2, (bucket + 0.5) / PER_DOUBLING);
            }
        }
        return -1;
    }
}
