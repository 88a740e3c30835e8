// A group member that compiles with Kafka's clients from 0.9 to 3. It prints the values of that many
// records, commits, and leaves.

import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

public class OldConsumer {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[2]);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        List<String> topics = new ArrayList<>();
        for (int index = 4; index < arguments.length; index++) {
            topics.add(arguments[1] + "-" + arguments[index]);
        }
        StringDeserializer deserializer = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, deserializer, deserializer)) {
            consumer.subscribe(topics);
            int left = Integer.parseInt(arguments[3]);
            while (left > 0) {
                for (ConsumerRecord<String, String> record : consumer.poll(100)) {
                    System.out.println(record.value());
                    left--;
                }
            }
            consumer.commitSync();
        }
    }
}
