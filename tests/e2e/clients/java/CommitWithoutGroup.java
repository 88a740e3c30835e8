// A consumer that commits without being a member of the group, as Flink's and Spark's consumers do.
// It assigns itself a partition, reads from the committed offset (or the beginning) to the end,
// commits with metadata, and prints the first offset and the committed one.

import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class CommitWithoutGroup {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        TopicPartition partition = new TopicPartition(arguments[2], 0);
        ByteArrayDeserializer deserializer = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, deserializer, deserializer)) {
            consumer.assign(Set.of(partition));
            long first = consumer.position(partition);
            long end = consumer.endOffsets(Set.of(partition)).get(partition);
            while (consumer.position(partition) < end) {
                consumer.poll(Duration.ofMillis(100));
            }
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(end, "by Java")));
            System.out.println(first + " " + consumer.committed(Set.of(partition)).get(partition).offset());
        }
    }
}
