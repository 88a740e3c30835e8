// Tests client configs, given as properties files. With each, it produces a record to a topic, reads
// it as the only member of a new group, and prints "ok" or the error.

import java.io.FileReader;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Authentication {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[0];
        String group = arguments[1];
        for (String path : List.of(arguments).subList(2, arguments.length)) {
            Properties settings = new Properties();
            try (FileReader file = new FileReader(path)) {
                settings.load(file);
            }
            String url = settings.getProperty("sasl.oauthbearer.token.endpoint.url");
            if (url != null) {
                System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", url);
            }
            settings.put("max.block.ms", "10000");
            settings.put("group.id", group + UUID.randomUUID());
            settings.put("auto.offset.reset", "earliest");
            System.out.println(attempt(settings, topic));
        }
    }

    private static String attempt(Properties settings, String topic) {
        String value = UUID.randomUUID().toString();
        StringSerializer serializer = new StringSerializer();
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, serializer, serializer)) {
            producer.send(new ProducerRecord<>(topic, value)).get();
        } catch (ExecutionException error) {
            return describe(error.getCause());
        } catch (Exception error) {
            return describe(error);
        }
        StringDeserializer deserializer = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, deserializer, deserializer)) {
            consumer.subscribe(List.of(topic));
            long deadline = System.currentTimeMillis() + 20_000;
            while (System.currentTimeMillis() < deadline) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    if (record.value().equals(value)) {
                        return "ok";
                    }
                }
            }
            return "the consumer did not receive the record";
        } catch (Exception error) {
            return describe(error);
        }
    }

    private static String describe(Throwable error) {
        return error.getClass().getSimpleName() + ": " + error.getMessage();
    }
}
