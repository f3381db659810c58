import java.util.Map;
import org.apache.storm.generated.DRPCExecutionException;
import org.apache.storm.utils.DRPCClient;
import org.apache.storm.utils.Utils;

/** Storm's own client. Arguments: port, transport, JAAS file or "", function, then arguments of the function. */
public final class DrpcPeer {
    private DrpcPeer() {}

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> conf = Utils.readDefaultConfig();
        conf.put("storm.thrift.transport", arguments[1]);
        if (!arguments[2].isEmpty()) {
            conf.put("java.security.auth.login.config", arguments[2]);
            System.setProperty("java.security.auth.login.config", arguments[2]);
        }
        conf.put("storm.nimbus.retry.times", 0);
        try (DRPCClient client = new DRPCClient(conf, "127.0.0.1", Integer.parseInt(arguments[0]))) {
            for (int at = 4; at < arguments.length; at++) {
                try {
                    System.out.println("> " + client.execute(arguments[3], arguments[at]));
                } catch (DRPCExecutionException error) {
                    System.out.println("! " + error.get_type() + " " + error.get_msg());
                }
            }
        }
        System.exit(0);
    }
}
