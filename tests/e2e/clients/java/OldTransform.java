// A transactional producer that compiles with Kafka's clients from 0.11 to 3. It reads records of one
// partition, writes them to another topic in transactions with the offsets, and aborts each second.

import java.util.Collections;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class OldTransform {
    public static void main(String[] arguments) {
        String address = arguments[0];
        String group = arguments[3];
        long count = Long.parseLong(arguments[4]);
        Properties consumed = new Properties();
        consumed.put("bootstrap.servers", address);
        consumed.put("group.id", group);
        consumed.put("enable.auto.commit", "false");
        consumed.put("isolation.level", "read_committed");
        consumed.put("max.poll.records", "10");
        Properties produced = new Properties();
        produced.put("bootstrap.servers", address);
        produced.put("transactional.id", group);
        StringDeserializer deserializer = new StringDeserializer();
        StringSerializer serializer = new StringSerializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(consumed, deserializer, deserializer);
                KafkaProducer<String, String> producer = new KafkaProducer<>(produced, serializer, serializer)) {
            TopicPartition partition = new TopicPartition(arguments[1], 0);
            consumer.assign(Collections.singletonList(partition));
            consumer.seek(partition, 0);
            producer.initTransactions();
            boolean isAborted = true;
            long position = 0;
            while (position < count) {
                ConsumerRecords<String, String> records = consumer.poll(100);
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                long end = position;
                for (ConsumerRecord<String, String> record : records) {
                    producer.send(new ProducerRecord<>(arguments[2], record.key(), record.value()));
                    end = record.offset() + 1;
                }
                producer.sendOffsetsToTransaction(
                        Collections.singletonMap(partition, new OffsetAndMetadata(end)), group);
                if (isAborted) {
                    producer.flush();
                    producer.abortTransaction();
                    consumer.seek(partition, position);
                } else {
                    producer.commitTransaction();
                    position = end;
                }
                isAborted = !isAborted;
            }
        }
    }
}
