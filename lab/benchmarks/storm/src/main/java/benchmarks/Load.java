package benchmarks;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/**
 * Emits what the topologies process, as fast as it goes or at a fixed rate, and measures. All of a LocalCluster is one
 * process, so what the phases and the tasks tell each other is static.
 */
public final class Load extends BaseRichSpout {
    /** Roots a second; 0 for all that go. */
    static volatile long rate = 0;
    /** Complete latencies of the present phase. */
    static volatile Histogram latencies = new Histogram();
    /** Roots that are done. */
    static final LongAdder DONE = new LongAdder();

    /** More than can be pending. */
    private static final int RING = 1 << 20;

    private final String input;
    private final boolean numbers;
    private final int keys;
    private final boolean acked;

    private transient SpoutOutputCollector collector;
    private transient List<String> texts;
    private transient long[] emittedAt;
    private transient long emitted;
    private transient long knownRate;
    private transient long phaseBegan;
    private transient long inPhase;

    /**
     * @param input the file with the sentences, one a line
     * @param numbers whether to emit numbers instead
     * @param keys how many keys the events have that are emitted instead; 0 for no events
     * @param acked whether there are ackers
     */
    Load(String input, boolean numbers, int keys, boolean acked) {
        this.input = input;
        this.numbers = numbers;
        this.keys = keys;
        this.acked = acked;
    }

    @Override
    public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {
        this.collector = collector;
        try {
            texts = Files.readAllLines(Path.of(input));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        emittedAt = new long[RING];
    }

    @Override
    public void nextTuple() {
        long now = System.nanoTime();
        long wanted = rate;
        if (wanted != knownRate) {
            knownRate = wanted;
            phaseBegan = now;
            inPhase = 0;
        }
        if (wanted > 0 && (now - phaseBegan) * 1e-9 * wanted <= inPhase) {
            return;
        }
        Values values = keys > 0
                ? new Values(emitted % keys, emitted)
                : new Values(numbers ? (Object) emitted : texts.get((int) (emitted % texts.size())));
        if (acked) {
            emittedAt[(int) (emitted % RING)] = now;
            collector.emit(values, emitted);
        } else {
            collector.emit(values);
        }
        emitted++;
        inPhase++;
    }

    @Override
    public void ack(Object id) {
        DONE.increment();
        latencies.add(System.nanoTime() - emittedAt[(int) ((Long) id % RING)]);
    }

    @Override
    public void fail(Object id) {
        System.err.println("a tuple failed: the figures are void");
        Runtime.getRuntime().halt(1);
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {
        declarer.declare(keys > 0 ? new Fields("key", "time") : new Fields("value"));
    }
}
