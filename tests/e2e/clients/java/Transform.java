// Reads a topic, and writes each record to another one in transactions that also commit the offsets
// (KIP-447). Some transactions it aborts on purpose. It exits on errors that only a new producer
// survives; a transaction that cannot be committed is aborted, and its records are read again.

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Transform {
    private final KafkaConsumer<String, String> consumer;
    private final KafkaProducer<String, String> producer;
    private final String output;
    private final int abortEvery;
    private int transactions;

    public static void main(String[] arguments) {
        Map<String, String> options = new HashMap<>();
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            options.put(pair[0], pair[1]);
        }
        new Transform(options).run(options.get("input"));
    }

    Transform(Map<String, String> options) {
        Map<String, Object> consumed = new HashMap<>();
        consumed.put("bootstrap.servers", options.get("bootstrap"));
        consumed.put("group.id", options.get("group"));
        consumed.put("enable.auto.commit", "false");
        consumed.put("auto.offset.reset", "earliest");
        consumed.put("isolation.level", "read_committed");
        consumed.put("max.poll.records", options.get("records"));
        consumed.put("session.timeout.ms", "6000");
        Map<String, Object> produced = new HashMap<>();
        produced.put("bootstrap.servers", options.get("bootstrap"));
        produced.put("transactional.id", options.get("transactional_id"));
        produced.put("transaction.timeout.ms", "10000");
        consumer = new KafkaConsumer<>(consumed, new StringDeserializer(), new StringDeserializer());
        producer = new KafkaProducer<>(produced, new StringSerializer(), new StringSerializer());
        output = options.get("output");
        abortEvery = Integer.parseInt(options.get("abort_every"));
    }

    void run(String input) {
        producer.initTransactions();
        consumer.subscribe(List.of(input));
        while (true) {
            ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
            if (!records.isEmpty()) {
                transform(records);
            }
        }
    }

    private void transform(ConsumerRecords<String, String> records) {
        try {
            producer.beginTransaction();
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            for (ConsumerRecord<String, String> record : records) {
                producer.send(new ProducerRecord<>(output, record.partition(), record.key(), record.value()));
                TopicPartition partition = new TopicPartition(record.topic(), record.partition());
                offsets.put(partition, new OffsetAndMetadata(record.offset() + 1));
            }
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            transactions++;
            if (transactions % abortEvery == 0) {
                producer.flush();
                abort();
            } else {
                producer.commitTransaction();
                System.out.println("committed " + records.count());
            }
        } catch (ProducerFencedException
                | InvalidProducerEpochException
                | OutOfOrderSequenceException
                | AuthorizationException error) {
            throw error;
        } catch (KafkaException error) {
            System.out.println("failed " + error);
            abort();
        }
    }

    private void abort() {
        producer.abortTransaction();
        System.out.println("aborted");
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
        for (TopicPartition partition : consumer.assignment()) {
            OffsetAndMetadata offset = committed.get(partition);
            if (offset == null) {
                consumer.seekToBeginning(List.of(partition));
            } else {
                consumer.seek(partition, offset.offset());
            }
        }
    }
}
