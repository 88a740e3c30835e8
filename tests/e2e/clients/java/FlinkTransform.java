// Counts the records of each key with Flink, and writes each record with its count to the same
// partition of another topic, exactly once. At its start it continues from the newest checkpoint in
// a directory, if there is one. It prints `completed` for a checkpoint, and `open` for a transaction
// that has begun after it and has some records.

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.Comparator;
import java.util.Optional;
import java.util.stream.Stream;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.SerializationSchema;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.sink.TransactionNamingStrategy;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

public class FlinkTransform {
    // It takes this long for a record, so that there are checkpoints, and kills, between records.
    private static final long RECORD_MILLISECONDS = 5;
    private static final int OPEN_RECORDS = 10;

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        Path checkpoints = Files.createDirectories(Path.of(arguments[1]));
        StreamExecutionEnvironment job = StreamExecutionEnvironment.getExecutionEnvironment(settings(checkpoints));
        KafkaSource<Record> source = KafkaSource.<Record>builder()
                .setBootstrapServers(bootstrap)
                .setTopics("input")
                .setGroupId("flink")
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setDeserializer(new Decoder())
                .setProperty("isolation.level", "read_committed")
                .build();
        KafkaSink<Record> sink = KafkaSink.<Record>builder()
                .setBootstrapServers(bootstrap)
                .setRecordSerializer(KafkaRecordSerializationSchema.<Record>builder()
                        .setTopic("output")
                        .setPartitioner((record, key, value, topic, partitions) -> record.f0)
                        .setKeySerializationSchema(new Key())
                        .setValueSerializationSchema(new Value())
                        .build())
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix("flink")
                .setTransactionNamingStrategy(TransactionNamingStrategy.valueOf(arguments[2]))
                // Longer than a test, so that only Flink ends the transactions that a kill leaves.
                .setProperty("transaction.timeout.ms", "600000")
                .build();
        job.fromSource(source, WatermarkStrategy.noWatermarks(), "input")
                .map(new Pause())
                .keyBy(record -> record.f1)
                .map(new Count())
                .sinkTo(sink);
        job.execute();
    }

    private static Configuration settings(Path checkpoints) throws IOException {
        Configuration settings = new Configuration();
        settings.setString("parallelism.default", "2");
        settings.setString("execution.checkpointing.interval", "500ms");
        settings.setString("execution.checkpointing.dir", checkpoints.toUri().toString());
        settings.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        settings.setString("restart-strategy.type", "fixed-delay");
        settings.setString("restart-strategy.fixed-delay.attempts", "1000");
        settings.setString("restart-strategy.fixed-delay.delay", "500ms");
        settings.setString("taskmanager.memory.network.min", "16m");
        settings.setString("taskmanager.memory.network.max", "16m");
        settings.setString("taskmanager.memory.managed.size", "16m");
        newest(checkpoints).ifPresent(checkpoint -> {
            System.out.println("continues from " + checkpoint);
            settings.setString("execution.state-recovery.path", checkpoint.toUri().toString());
        });
        return settings;
    }

    // Checkpoints of a job are at JOB/chk-NUMBER, and are complete if they have metadata.
    private static Optional<Path> newest(Path checkpoints) throws IOException {
        try (Stream<Path> files = Files.walk(checkpoints, 3)) {
            return files.filter(file -> file.endsWith("_metadata"))
                    .max(Comparator.comparing(FlinkTransform::modified))
                    .map(Path::getParent);
        }
    }

    private static FileTime modified(Path file) {
        try {
            return Files.getLastModifiedTime(file);
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    // The partition, the key and the value.
    @SuppressWarnings("unchecked")
    public static class Record extends Tuple3<Integer, String, String> {
        public Record() {}

        Record(int partition, String key, String value) {
            super(partition, key, value);
        }
    }

    static class Key implements SerializationSchema<Record> {
        @Override
        public byte[] serialize(Record record) {
            return record.f1.getBytes(StandardCharsets.UTF_8);
        }
    }

    static class Value implements SerializationSchema<Record> {
        @Override
        public byte[] serialize(Record record) {
            return record.f2.getBytes(StandardCharsets.UTF_8);
        }
    }

    static class Decoder implements KafkaRecordDeserializationSchema<Record> {
        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<Record> to) {
            String key = new String(record.key(), StandardCharsets.UTF_8);
            String value = new String(record.value(), StandardCharsets.UTF_8);
            to.collect(new Record(record.partition(), key, value));
        }

        @Override
        public TypeInformation<Record> getProducedType() {
            return TypeInformation.of(Record.class);
        }
    }

    // It is chained to the source: barriers of checkpoints wait for one record, not for buffers.
    static class Pause implements MapFunction<Record, Record> {
        @Override
        public Record map(Record record) throws Exception {
            Thread.sleep(RECORD_MILLISECONDS);
            return record;
        }
    }

    static class Count extends RichMapFunction<Record, Record>
            implements CheckpointedFunction, CheckpointListener {
        private transient ValueState<Integer> count;
        private transient int recordsSinceCheckpoint;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.INT));
        }

        @Override
        public Record map(Record record) throws Exception {
            int counted = count.value() == null ? 1 : count.value() + 1;
            count.update(counted);
            recordsSinceCheckpoint++;
            if (recordsSinceCheckpoint == OPEN_RECORDS) {
                System.out.println("open " + OPEN_RECORDS);
            }
            return new Record(record.f0, record.f1, record.f2 + " " + counted);
        }

        @Override
        public void initializeState(FunctionInitializationContext context) {
            System.out.println(context.isRestored() ? "restored" : "started");
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) {
            recordsSinceCheckpoint = 0;
        }

        @Override
        public void notifyCheckpointComplete(long checkpoint) {
            System.out.println("completed " + checkpoint);
        }
    }
}
