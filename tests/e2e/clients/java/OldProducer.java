// A producer that compiles with Kafka's clients since 0.8.2. It sends 50 records to a topic of each
// codec, and prints the offset of the last one.

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

public class OldProducer {
    public static void main(String[] arguments) throws Exception {
        for (int index = 2; index < arguments.length; index++) {
            String codec = arguments[index];
            Map<String, Object> settings = new HashMap<>();
            settings.put("bootstrap.servers", arguments[0]);
            settings.put("acks", "all");
            settings.put("linger.ms", "50");
            settings.put("compression.type", codec);
            StringSerializer serializer = new StringSerializer();
            KafkaProducer<String, String> producer = new KafkaProducer<>(settings, serializer, serializer);
            Future<RecordMetadata> last = null;
            for (int number = 0; number < 50; number++) {
                String value = codec + " " + number;
                last = producer.send(new ProducerRecord<>(arguments[1] + "-" + codec, "key", value));
            }
            System.out.println(last.get().offset());
            producer.close();
        }
    }
}
