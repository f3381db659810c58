package benchmarks;

import java.util.Arrays;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.LocalDRPC;
import org.apache.storm.drpc.LinearDRPCTopologyBuilder;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseBasicBolt;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/**
 * Asks storm-starter's BasicDRPCTopology on a LocalCluster with a LocalDRPC. Arguments: how often to warm up, how often to
 * ask, and ms between two questions. Prints the latencies in ns, one a line.
 */
public final class Drpc {
    private Drpc() {}

    public static void main(String[] arguments) throws Exception {
        LinearDRPCTopologyBuilder builder = new LinearDRPCTopologyBuilder("exclamation");
        builder.addBolt(new Exclaim(), 3);
        LocalDRPC drpc = new LocalDRPC();
        LocalCluster cluster = new LocalCluster();
        Config conf = new Config();
        cluster.submitTopology("drpc", conf, builder.createLocalTopology(drpc));
        int warm = Integer.parseInt(arguments[0]);
        long[] nanos = new long[Integer.parseInt(arguments[1])];
        long pause = Long.parseLong(arguments[2]);
        for (int at = -warm; at < nanos.length; at++) {
            long began = System.nanoTime();
            String result = drpc.execute("exclamation", "hello" + at);
            long took = System.nanoTime() - began;
            if (!result.equals("hello" + at + "!")) {
                throw new IllegalStateException(result);
            }
            if (at >= 0) {
                nanos[at] = took;
            }
            Thread.sleep(pause);
        }
        Arrays.stream(nanos).forEach(System.out::println);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    /** Adds an exclamation mark. */
    public static final class Exclaim extends BaseBasicBolt {
        @Override
        public void execute(Tuple tuple, BasicOutputCollector collector) {
            collector.emit(new Values(tuple.getValue(0), tuple.getString(1) + "!"));
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("id", "result"));
        }
    }
}
