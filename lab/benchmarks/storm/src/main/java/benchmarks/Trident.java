package benchmarks;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.operation.builtin.Count;
import org.apache.storm.trident.spout.IBatchSpout;
import org.apache.storm.trident.testing.MemoryMapState;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/**
 * Counts words with Trident on a LocalCluster. Arguments: a file of sentences, sentences of a batch, seconds to warm up,
 * seconds to measure. Prints how many sentences were committed a second.
 */
public final class Trident {
    private static final AtomicLong COMMITTED = new AtomicLong();

    private Trident() {}

    public static void main(String[] arguments) throws Exception {
        TridentTopology topology = new TridentTopology();
        topology.newStream("sentences", new Sentences(arguments[0], Integer.parseInt(arguments[1])))
            .each(new Fields("sentence"), new Split(), new Fields("word"))
            .groupBy(new Fields("word"))
            .persistentAggregate(new MemoryMapState.Factory(), new Count(), new Fields("count"));
        Config conf = new Config();
        conf.setMaxSpoutPending(4);
        conf.put(Config.TOPOLOGY_TRIDENT_BATCH_EMIT_INTERVAL_MILLIS, 1);
        new LocalCluster().submitTopology("trident", conf, topology.build());
        while (COMMITTED.get() == 0) {
            Thread.sleep(10);
        }
        Thread.sleep(1000 * Long.parseLong(arguments[2]));
        long before = COMMITTED.get();
        long began = System.nanoTime();
        Thread.sleep(1000 * Long.parseLong(arguments[3]));
        System.out.println(Math.round((COMMITTED.get() - before) * 1e9 / (System.nanoTime() - began)));
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    /** Emits the sentences of a file again and again. */
    public static final class Sentences implements IBatchSpout {
        private final String path;
        private final int size;
        private transient List<String> sentences;

        Sentences(String path, int size) {
            this.path = path;
            this.size = size;
        }

        @Override
        public void open(Map<String, Object> conf, TopologyContext context) {
            try {
                sentences = Files.readAllLines(Paths.get(path), StandardCharsets.UTF_8);
            } catch (java.io.IOException error) {
                throw new java.io.UncheckedIOException(error);
            }
        }

        @Override
        public void emitBatch(long batch, TridentCollector collector) {
            for (long at = batch * size; at < (batch + 1) * size; at++) {
                collector.emit(new Values(sentences.get((int) (at % sentences.size()))));
            }
        }

        @Override
        public void ack(long batch) {
            COMMITTED.addAndGet(size);
        }

        @Override
        public void close() {}

        @Override
        public Map<String, Object> getComponentConfiguration() {
            Config conf = new Config();
            conf.setMaxTaskParallelism(1);
            return conf;
        }

        @Override
        public Fields getOutputFields() {
            return new Fields("sentence");
        }
    }

    /** Splits sentences. */
    public static final class Split extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            for (String word : tuple.getString(0).split(" ")) {
                collector.emit(new Values(word));
            }
        }
    }
}
