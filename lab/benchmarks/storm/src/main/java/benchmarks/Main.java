package benchmarks;

import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.topology.IRichBolt;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.tuple.Fields;

/**
 * Runs one topology on a LocalCluster and tells on standard output, a line of JSON each, when it has acked its first
 * tuple, when a phase of measuring begins, and what came of it. Arguments are key=value; lab/benchmarks/contenders/storm.py
 * has them.
 */
public final class Main {
    private static final long START_SECONDS = 120;

    private Main() {}

    public static void main(String[] arguments) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (String argument : arguments) {
            int at = argument.indexOf('=');
            options.put(argument.substring(0, at), argument.substring(at + 1));
        }
        Config conf = new Config();
        conf.setNumWorkers(1);
        conf.setNumAckers(Integer.parseInt(options.get("ackers")));
        conf.setMaxSpoutPending(Integer.parseInt(options.get("pending")));
        conf.setMessageTimeoutSecs(120);
        LocalCluster cluster = new LocalCluster();
        cluster.submitTopology("benchmark", conf, build(options).createTopology());
        measure(options);
        System.out.flush();
        // Closing the cluster takes longer than the measurement, and nothing of it is needed again.
        Runtime.getRuntime().halt(0);
    }

    private static TopologyBuilder build(Map<String, String> options) {
        boolean acked = !options.get("ackers").equals("0");
        String workload = options.get("workload");
        TopologyBuilder builder = new TopologyBuilder();
        if (workload.equals("kafka")) {
            builder.setSpout("load", new Topic(options.get("servers"), options.get("topic")), 1);
        } else {
            // Windows get events of as many keys; other workloads have none.
            int keys = Integer.parseInt(options.getOrDefault("keys", "0"));
            builder.setSpout("load", new Load(options.get("input"), workload.equals("chain"), keys, acked), 1);
        }
        switch (workload) {
            // A task a bolt: on two cores more threads make Storm slower, by half while its code is not compiled yet.
            case "word count", "kafka" -> {
                builder.setBolt("split", new Bolts.Split(), 1).shuffleGrouping("load");
                builder.setBolt("count", new Bolts.Count(), 1).fieldsGrouping("split", new Fields("word"));
            }
            case "word count, Python" -> {
                builder.setBolt("split", python(options, "split"), 2).shuffleGrouping("load");
                builder.setBolt("count", python(options, "count"), 2).fieldsGrouping("split", new Fields("word"));
            }
            case "chain" -> {
                Fields value = new Fields("value");
                builder.setBolt("hop1", new Bolts.Hop(), 1).fieldsGrouping("load", value);
                builder.setBolt("hop2", new Bolts.Hop(), 1).fieldsGrouping("hop1", value);
                builder.setBolt("hop3", new Bolts.End(), 1).fieldsGrouping("hop2", value);
            }
            case "windows" -> builder.setBolt("count", Windows.bolt(), 1).fieldsGrouping("load", new Fields("key"));
            default -> throw new IllegalArgumentException("workload " + workload);
        }
        return builder;
    }

    private static IRichBolt python(Map<String, String> options, String bolt) {
        return new Bolts.Python(options.get("python"), options.get("script"), options.get("modules"), bolt);
    }

    /** Goes through the phases, one for each rate. */
    private static void measure(Map<String, String> options) throws InterruptedException {
        double warmUp = Double.parseDouble(options.get("warm-up"));
        double settle = Double.parseDouble(options.get("settle"));
        double seconds = Double.parseDouble(options.get("seconds"));
        String[] rates = options.get("rates").split(",");
        Load.rate = Long.parseLong(rates[0]);
        long deadline = System.nanoTime() + START_SECONDS * 1_000_000_000L;
        while (Load.DONE.sum() == 0) {
            if (System.nanoTime() > deadline) {
                System.err.println("nothing was acked within " + START_SECONDS + " s");
                Runtime.getRuntime().halt(1);
            }
            Thread.sleep(10);
        }
        System.out.println("{\"event\": \"first ack\"}");
        for (int phase = 0; phase < rates.length; phase++) {
            Load.rate = Long.parseLong(rates[phase]);
            Thread.sleep((long) (1000 * (phase == 0 ? warmUp : settle)));
            System.out.println("{\"event\": \"begin\"}");
            Histogram latencies = new Histogram();
            Load.latencies = latencies;
            long done = Load.DONE.sum();
            long began = System.nanoTime();
            Thread.sleep((long) (1000 * seconds));
            done = Load.DONE.sum() - done;
            double took = (System.nanoTime() - began) * 1e-9;
            System.out.println(String.format(
                    Locale.ROOT,
                    "{\"event\": \"end\", \"rate\": %s, \"roots\": %d, \"seconds\": %f,"
                            + " \"p50\": %f, \"p95\": %f, \"p99\": %f}",
                    rates[phase],
                    done,
                    took,
                    latencies.percentile(50),
                    latencies.percentile(95),
                    latencies.percentile(99)));
        }
    }
}
