import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.storm.cluster.PaceMakerStateStorage;
import org.apache.storm.generated.ClusterWorkerHeartbeat;
import org.apache.storm.generated.HBMessage;
import org.apache.storm.generated.HBMessageData;
import org.apache.storm.generated.HBPulse;
import org.apache.storm.generated.HBServerMessageType;
import org.apache.storm.metric.StormMetricsRegistry;
import org.apache.storm.pacemaker.Pacemaker;
import org.apache.storm.pacemaker.PacemakerClient;
import org.apache.storm.pacemaker.PacemakerClientPool;
import org.apache.storm.utils.Utils;

/**
 * Storm's own Pacemaker and its own clients, unmodified, driven line by line from a test.
 *
 * `server key=value...` runs Storm's Pacemaker until standard input ends. `client key=value...` reads requests, one a
 * line, and answers each with one line: see `answer`.
 */
public final class StormPeer {
    private final Map<String, Object> conf;
    private final Map<String, PacemakerClient> clients = new HashMap<>();
    private PacemakerClientPool pool;
    private PaceMakerStateStorage storage;

    private StormPeer(Map<String, Object> conf) {
        this.conf = conf;
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> conf = Utils.readDefaultConfig();
        for (int i = 1; i < arguments.length; i++) {
            String[] parts = arguments[i].split("=", 2);
            conf.put(parts[0], value(parts[1]));
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        if (arguments[0].equals("server")) {
            Class<?> server = Class.forName("org.apache.storm.pacemaker.PacemakerServer");
            Constructor<?> make = server.getDeclaredConstructors()[0];
            make.setAccessible(true);
            make.newInstance(new Pacemaker(conf, new StormMetricsRegistry()), conf);
            System.out.println("ready");
            while (lines.readLine() != null) {
                // Only the end counts.
            }
            Runtime.getRuntime().halt(0);
        }
        StormPeer peer = new StormPeer(conf);
        System.out.println("ready");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String said;
            try {
                said = peer.answer(line.split(" "));
            } catch (Exception error) {
                said = "failed " + error;
            }
            System.out.println(said.replace('\n', ' '));
        }
        Runtime.getRuntime().halt(0);
    }

    private static Object value(String text) {
        if (text.startsWith("[")) {
            return List.of(text.substring(1, text.length() - 1).split(","));
        }
        return text.matches("[0-9]+") ? (Object) Integer.valueOf(text) : text;
    }

    private String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "send": // send <host> <type> [<path> [<details>]]
                return shown(client(words[1]).send(message(words, 2)));
            case "pool": // pool <type> [<path> [<details>]]
                return shown(pool().send(message(words, 1)));
            case "all":
                StringBuilder said = new StringBuilder();
                for (HBMessage each : pool().sendAll(message(words, 1))) {
                    said.append(said.length() == 0 ? "" : " | ").append(shown(each));
                }
                return said.toString();
            case "set": // set <path> <seconds>: a whole heartbeat, as a worker's
                ClusterWorkerHeartbeat beat = new ClusterWorkerHeartbeat(
                    "topology-1", Collections.emptyMap(), Integer.parseInt(words[2]), 1);
                storage().set_worker_hb(words[1], Utils.serialize(beat), Collections.emptyList());
                return "done";
            case "get":
                byte[] found = storage().get_worker_hb(words[1], false);
                return found == null
                    ? "nothing" : "seconds " + Utils.deserialize(found, ClusterWorkerHeartbeat.class).get_time_secs();
            case "children":
                return String.join(" ", new TreeSet<>(storage().get_worker_hb_children(words[1], false)));
            case "delete":
                storage().delete_worker_hb(words[1]);
                return "done";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private PacemakerClient client(String host) {
        return clients.computeIfAbsent(host, name -> new PacemakerClient(conf, name));
    }

    private PacemakerClientPool pool() {
        if (pool == null) {
            pool = new PacemakerClientPool(conf);
        }
        return pool;
    }

    private PaceMakerStateStorage storage() throws Exception {
        if (storage == null) {
            storage = new PaceMakerStateStorage(pool(), null);
        }
        return storage;
    }

    private static HBMessage message(String[] words, int at) {
        HBServerMessageType type = HBServerMessageType.valueOf(words[at]);
        if (words.length == at + 1) {
            return new HBMessage(type, null);
        }
        if (words.length == at + 2) {
            return new HBMessage(type, HBMessageData.path(words[at + 1]));
        }
        HBPulse pulse = new HBPulse();
        pulse.set_id(words[at + 1]);
        pulse.set_details(Base64.getDecoder().decode(words[at + 2]));
        return new HBMessage(type, HBMessageData.pulse(pulse));
    }

    private static String shown(HBMessage message) {
        String type = message.get_type().name();
        if (!message.is_set_data() || !message.get_data().isSet()) {
            return type;
        }
        HBMessageData data = message.get_data();
        switch (data.getSetField()) {
            case BOOLVAL:
                return type + " " + data.get_boolval();
            case NODES:
                return type + " " + String.join(",", new TreeSet<>(data.get_nodes().get_pulseIds()));
            case PULSE:
                return type + " " + shown(data.get_pulse());
            case RECORDS:
                TreeSet<String> pulses = new TreeSet<>();
                data.get_records().get_pulses().forEach(pulse -> pulses.add(shown(pulse)));
                return type + " " + String.join(",", pulses);
            default:
                return type + " " + data.getSetField();
        }
    }

    private static String shown(HBPulse pulse) {
        byte[] details = pulse.get_details();
        return pulse.get_id() + "=" + (details == null ? "" : Base64.getEncoder().encodeToString(details));
    }
}
