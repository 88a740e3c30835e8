// Measures transactions of one producer, each with a record to every partition of a topic. It prints
// how many there were in a second, and percentiles of the time of a commit in milliseconds.

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class TransactionTimes {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        int partitions = Integer.parseInt(arguments[2]);
        int warmUp = Integer.parseInt(arguments[3]);
        int count = Integer.parseInt(arguments[4]);
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("transactional.id", topic);
        settings.put("linger.ms", "0");
        ByteArraySerializer serializer = new ByteArraySerializer();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, serializer, serializer)) {
            producer.initTransactions();
            transact(producer, topic, partitions, warmUp);
            System.out.println("warm");
            System.in.read();
            long began = System.nanoTime();
            double[] times = transact(producer, topic, partitions, count);
            double seconds = (System.nanoTime() - began) / 1e9;
            Arrays.sort(times);
            System.out.printf(
                    Locale.ROOT,
                    "%.2f %.3f %.3f%n",
                    count / seconds,
                    times[count / 2],
                    times[Math.min(count - 1, count * 99 / 100)]);
        }
    }

    static double[] transact(KafkaProducer<byte[], byte[]> producer, String topic, int partitions, int count)
            throws Exception {
        double[] times = new double[count];
        for (int number = 0; number < count; number++) {
            producer.beginTransaction();
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int partition = 0; partition < partitions; partition++) {
                sent.add(producer.send(new ProducerRecord<>(topic, partition, null, new byte[100])));
            }
            for (Future<RecordMetadata> future : sent) {
                future.get();
            }
            long began = System.nanoTime();
            producer.commitTransaction();
            times[number] = (System.nanoTime() - began) / 1e6;
        }
        return times;
    }
}
