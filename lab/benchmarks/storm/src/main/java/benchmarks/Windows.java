package benchmarks;

import java.util.HashMap;
import java.util.Map;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.IWindowedBolt;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseWindowedBolt;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import org.apache.storm.windowing.TupleWindow;

/** Counts by key in windows; lab/benchmarks/workloads/windows.py has the same. */
final class Windows extends BaseWindowedBolt {
    private transient OutputCollector collector;

    /** Returns the bolt with tumbling windows of ten seconds by the events' own time. */
    static IWindowedBolt bolt() {
        return new Windows()
                .withTumblingWindow(Duration.seconds(10))
                .withTimestampField("time")
                .withLag(Duration.of(1))
                // Windows end as often as can be: a tuple is acked only then.
                .withWatermarkInterval(Duration.of(100));
    }

    @Override
    public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
        this.collector = collector;
    }

    @Override
    public void execute(TupleWindow window) {
        Map<Object, Long> counts = new HashMap<>();
        for (Tuple tuple : window.get()) {
            counts.merge(tuple.getValue(0), 1L, Long::sum);
        }
        counts.forEach((key, count) -> collector.emit(new Values(key, count)));
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {
        declarer.declare(new Fields("key", "count"));
    }
}
