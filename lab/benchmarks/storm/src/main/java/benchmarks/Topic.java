package benchmarks;

import org.apache.storm.kafka.spout.FirstPollOffsetStrategy;
import org.apache.storm.kafka.spout.KafkaSpout;
import org.apache.storm.kafka.spout.KafkaSpoutConfig;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** Reads a topic from its first record on, as fast as it goes, and counts what was acked. */
final class Topic extends KafkaSpout<String, String> {
    Topic(String servers, String topic) {
        super(KafkaSpoutConfig.builder(servers, topic)
                .setProp("group.id", "storm")
                .setFirstPollOffsetStrategy(FirstPollOffsetStrategy.EARLIEST)
                .setRecordTranslator(record -> new Values(record.value()), new Fields("sentence"))
                .build());
    }

    @Override
    public void ack(Object messageId) {
        super.ack(messageId);
        Load.DONE.increment();
    }
}
