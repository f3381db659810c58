package benchmarks;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import net.minidev.json.JSONValue;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.spout.ShellSpout;
import org.apache.storm.task.ShellBolt;
import org.apache.storm.topology.BoltDeclarer;
import org.apache.storm.topology.IRichBolt;
import org.apache.storm.topology.IRichSpout;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.tuple.Fields;

/**
 * Runs a topology of commands on a LocalCluster until a file is there. Arguments: the topology in JSON, as
 * lab/same_output/__main__.py writes it, and the file.
 */
public final class Commands {
    private static final long MOST_MILLIS = 180_000;

    private Commands() {}

    public static void main(String[] arguments) throws Exception {
        Map<String, Map<String, Object>> components = parts(JSONValue.parse(Files.readString(Path.of(arguments[0]))));
        TopologyBuilder builder = new TopologyBuilder();
        for (Map.Entry<String, Map<String, Object>> each : components.entrySet()) {
            Map<String, Object> part = each.getValue();
            Number tasks = (Number) part.get("tasks");
            Shell shell = new Shell(part);
            if (part.get("kind").equals("spout")) {
                builder.setSpout(each.getKey(), new Spout(shell), tasks).addConfigurations(part(part.get("conf")));
                continue;
            }
            BoltDeclarer bolt = builder.setBolt(each.getKey(), new Bolt(shell), tasks);
            bolt.addConfigurations(part(part.get("conf")));
            for (Object given : (List<?>) part.get("inputs")) {
                subscribe(bolt, part(given));
            }
        }
        Config conf = new Config();
        conf.setMaxSpoutPending(100);
        LocalCluster cluster = new LocalCluster();
        cluster.submitTopology("commands", conf, builder.createTopology());
        long deadline = System.currentTimeMillis() + MOST_MILLIS;
        while (!Files.exists(Path.of(arguments[1])) && System.currentTimeMillis() < deadline) {
            Thread.sleep(50);
        }
        Runtime.getRuntime().halt(Files.exists(Path.of(arguments[1])) ? 0 : 1);
    }

    private static void subscribe(BoltDeclarer bolt, Map<String, Object> input) {
        String source = (String) input.get("component");
        String stream = (String) input.get("stream");
        List<String> fields = strings(input.get("fields"));
        switch ((String) input.get("grouping")) {
            case "shuffle" -> bolt.shuffleGrouping(source, stream);
            case "all" -> bolt.allGrouping(source, stream);
            case "fields" -> {
                if (fields.isEmpty()) {
                    bolt.globalGrouping(source, stream);
                } else {
                    bolt.fieldsGrouping(source, stream, new Fields(fields));
                }
            }
            default -> throw new IllegalArgumentException(input.toString());
        }
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> part(Object given) {
        return (Map<String, Object>) given;
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Map<String, Object>> parts(Object given) {
        return (Map<String, Map<String, Object>>) given;
    }

    @SuppressWarnings("unchecked")
    private static List<String> strings(Object given) {
        return (List<String>) given;
    }

    /** What both kinds of component have. */
    private record Shell(Map<String, Object> part) {
        String[] command() {
            return strings(part.get("command")).toArray(new String[0]);
        }

        Map<String, String> environment() {
            return Map.of("PYTHONPATH", (String) part.get("modules"));
        }

        void declare(OutputFieldsDeclarer declarer) {
            parts(part.get("streams")).forEach((name, stream) ->
                    declarer.declareStream(name, (Boolean) stream.get("direct"), new Fields(strings(stream.get("fields")))));
        }
    }

    /** A spout that is a command. */
    static final class Spout extends ShellSpout implements IRichSpout {
        private final transient Shell shell;

        Spout(Shell shell) {
            super(shell.command());
            this.shell = shell;
            setEnv(shell.environment());
            changeChildCWD(false);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            shell.declare(declarer);
        }

        @Override
        public Map<String, Object> getComponentConfiguration() {
            return null;
        }
    }

    /** A bolt that is a command. */
    static final class Bolt extends ShellBolt implements IRichBolt {
        private final transient Shell shell;

        Bolt(Shell shell) {
            super(shell.command());
            this.shell = shell;
            setEnv(shell.environment());
            changeChildCWD(false);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            shell.declare(declarer);
        }

        @Override
        public Map<String, Object> getComponentConfiguration() {
            return null;
        }
    }
}
