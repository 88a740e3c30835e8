// A consumer that is no member of a group and commits all the same, as Flink's and Spark's do:
// it assigns a partition to itself, goes on from what is committed, or from the beginning, reads
// to the end, commits with a note, and prints from where to where it came.

import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class SimpleCommits {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        TopicPartition place = new TopicPartition(arguments[2], 0);
        ByteArrayDeserializer plain = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, plain, plain)) {
            consumer.assign(Set.of(place));
            long first = consumer.position(place);
            long end = consumer.endOffsets(Set.of(place)).get(place);
            while (consumer.position(place) < end) {
                consumer.poll(Duration.ofMillis(100));
            }
            consumer.commitSync(Map.of(place, new OffsetAndMetadata(end, "by Java")));
            System.out.println(first + " " + consumer.committed(Set.of(place)).get(place).offset());
        }
    }
}
