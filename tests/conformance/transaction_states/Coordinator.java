/*
 * Runs Kafka's own transaction coordinator over a log in memory, for one transactional id at a time.
 *
 * Reads a command per line, and answers each with a line: the reply, the markers that were sent, and
 * the metadata after it; or "thrown" with the exception.
 *
 *   load <state> <metadata as written below>    instead of the present transactional id, or "load -"
 *   init <fresh producer id> <time> <timeout> <producer id> <epoch>
 *   add <time> <producer id> <epoch> <transaction version> <partitions>
 *   verify <time> <producer id> <epoch> <partitions>
 *   end <fresh producer id> <time> <producer id> <epoch> <commit or abort> <transaction version>
 *   markers <time> <partitions>                 of the outcome that is prepared
 *   tick <time>
 *   transitions                                 only the states that each state may follow
 */

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import kafka.coordinator.transaction.InitProducerIdResult;
import kafka.coordinator.transaction.TransactionConfig;
import kafka.coordinator.transaction.TransactionCoordinator;
import kafka.coordinator.transaction.TransactionMarkerChannelManager;
import kafka.coordinator.transaction.TransactionMetadata;
import kafka.coordinator.transaction.TransactionStateManager;
import kafka.coordinator.transaction.TxnMetadataCacheEntry;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.ProducerIdAndEpoch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.transaction.ProducerIdManager;
import org.apache.kafka.coordinator.transaction.TransactionState;
import org.apache.kafka.coordinator.transaction.TxnTransitMetadata;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.common.TransactionVersion;
import scala.Function1;
import scala.Function3;
import scala.Option;
import scala.collection.mutable.HashSet;
import scala.runtime.BoxedUnit;

public class Coordinator {
    static final String ID = "id";
    static final RequestLocal REQUEST = RequestLocal.noCaching();

    static long nowMs;
    static long freshProducerId;
    static final ConcurrentHashMap<String, TransactionMetadata> metadata = new ConcurrentHashMap<>();
    static final List<String> output = new ArrayList<>();
    static TxnTransitMetadata completion;

    static final class Clock implements Time {
        public long milliseconds() { return nowMs; }
        public long nanoseconds() { return nowMs * 1_000_000; }
        public void sleep(long ms) { throw new UnsupportedOperationException(); }
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    /** Keeps all state in its cache; what is appended is durable at once. */
    static final class States extends TransactionStateManager {
        States(TransactionConfig config) {
            super(0, null, null, null, config, new Clock(), new Metrics());
            transactionMetadataCache().put(0, new TxnMetadataCacheEntry(0, metadata));
        }
        @Override public int partitionFor(String id) { return 0; }
        @Override public TransactionVersion transactionVersionLevel() { return TransactionVersion.TV_2; }
        @Override public boolean isTransaction2pcEnabled() { return false; }
        @Override public void appendTransactionToLog(
            String id, int epoch, TxnTransitMetadata transit, Function1<Errors, BoxedUnit> callback,
            Function1<Errors, Object> retry, RequestLocal local
        ) {
            metadata.get(id).completeTransitionTo(transit);
            callback.apply(Errors.NONE);
        }
    }

    /** Sends nothing: the command "markers" says which partitions have theirs. */
    static final class Markers extends TransactionMarkerChannelManager {
        Markers(KafkaConfig config, States states) {
            super(config, null, null, states, new Clock());
        }
        @Override public void addTxnMarkersToSend(
            int epoch, TransactionResult result, TransactionMetadata found, TxnTransitMetadata transit
        ) {
            completion = transit;
            if (!found.topicPartitions().isEmpty())
                output.add("markers " + found.producerId() + " " + found.producerEpoch() + " "
                    + result.toString().toLowerCase() + " " + text(found.topicPartitions()));
            complete();
        }
    }

    static void complete() {
        TransactionMetadata found = metadata.get(ID);
        if (completion == null || !found.topicPartitions().isEmpty()) return;
        found.completeTransitionTo(completion);
        completion = null;
    }

    static HashSet<TopicPartition> partitions(String text) {
        HashSet<TopicPartition> found = new HashSet<>();
        if (!text.equals("-"))
            for (String number : text.split(",")) found.addOne(new TopicPartition("t", Integer.parseInt(number)));
        return found;
    }

    static String text(scala.collection.Set<TopicPartition> partitions) {
        TreeSet<Integer> numbers = new TreeSet<>();
        partitions.foreach(it -> numbers.add(it.partition()));
        return numbers.isEmpty() ? "-" : numbers.stream().map(String::valueOf).collect(Collectors.joining(","));
    }

    static void load(String[] words) {
        completion = null;
        metadata.clear();
        if (words[1].equals("-")) return;
        TransactionState state = TransactionState.fromName(words[1]).get();
        TransactionMetadata found = new TransactionMetadata(
            ID, Long.parseLong(words[2]), Long.parseLong(words[3]), Long.parseLong(words[4]),
            Short.parseShort(words[5]), Short.parseShort(words[6]), Integer.parseInt(words[7]), state,
            partitions(words[8]), Long.parseLong(words[9]), Long.parseLong(words[10]),
            TransactionVersion.fromFeatureLevel(Short.parseShort(words[11])));
        metadata.put(ID, found);
        if (state == TransactionState.PREPARE_COMMIT || state == TransactionState.PREPARE_ABORT)
            completion = found.prepareComplete(nowMs);
    }

    static void describe() {
        TransactionMetadata it = metadata.get(ID);
        output.add(it == null ? "-" : String.join(" ", it.state().stateName(), "" + it.producerId(),
            "" + it.prevProducerId(), "" + it.nextProducerId(), "" + it.producerEpoch(),
            "" + it.lastProducerEpoch(), "" + it.txnTimeoutMs(), text(it.topicPartitions()),
            "" + it.txnStartTimestamp(), "" + it.txnLastUpdateTimestamp(),
            "" + it.clientTransactionVersion().featureLevel()));
    }

    static Function3<Errors, Object, Object, BoxedUnit> ended() {
        return (error, id, epoch) -> {
            output.add(error.code() + " " + id + " " + epoch);
            return BoxedUnit.UNIT;
        };
    }

    static void execute(TransactionCoordinator coordinator, String[] words) {
        switch (words[0]) {
            case "load": load(words); break;
            case "init": {
                freshProducerId = Long.parseLong(words[1]);
                nowMs = Long.parseLong(words[2]);
                long id = Long.parseLong(words[4]);
                Option<ProducerIdAndEpoch> expected = id == -1 ? Option.empty()
                    : Option.apply(new ProducerIdAndEpoch(id, Short.parseShort(words[5])));
                Function1<InitProducerIdResult, BoxedUnit> callback = result -> {
                    output.add(result.error().code() + " " + result.producerId() + " " + result.producerEpoch());
                    return BoxedUnit.UNIT;
                };
                coordinator.handleInitProducerId(
                    ID, Integer.parseInt(words[3]), false, false, expected, callback, REQUEST);
                break;
            }
            case "add": {
                nowMs = Long.parseLong(words[1]);
                Function1<Errors, BoxedUnit> callback = error -> {
                    output.add("" + error.code());
                    return BoxedUnit.UNIT;
                };
                coordinator.handleAddPartitionsToTransaction(
                    ID, Long.parseLong(words[2]), Short.parseShort(words[3]), partitions(words[5]), callback,
                    TransactionVersion.fromFeatureLevel(Short.parseShort(words[4])), REQUEST);
                break;
            }
            case "verify": {
                nowMs = Long.parseLong(words[1]);
                coordinator.handleVerifyPartitionsInTransaction(
                    ID, Long.parseLong(words[2]), Short.parseShort(words[3]), partitions(words[4]), result -> {
                        TreeMap<Integer, Short> errors = new TreeMap<>();
                        result.topicResults().forEach(topic -> topic.resultsByPartition().forEach(
                            it -> errors.put(it.partitionIndex(), it.partitionErrorCode())));
                        output.add(errors.toString().replace(" ", ""));
                        return BoxedUnit.UNIT;
                    });
                break;
            }
            case "end": {
                freshProducerId = Long.parseLong(words[1]);
                nowMs = Long.parseLong(words[2]);
                coordinator.handleEndTransaction(
                    ID, Long.parseLong(words[3]), Short.parseShort(words[4]),
                    words[5].equals("commit") ? TransactionResult.COMMIT : TransactionResult.ABORT,
                    TransactionVersion.fromFeatureLevel(Short.parseShort(words[6])), ended(), REQUEST);
                break;
            }
            case "markers":
                nowMs = Long.parseLong(words[1]);
                if (completion != null) {
                    TransactionMetadata found = metadata.get(ID);
                    partitions(words[2]).foreach(it -> { found.removePartition(it); return BoxedUnit.UNIT; });
                    complete();
                }
                break;
            case "transitions":
                for (TransactionState state : TransactionState.values())
                    output.add(state.stateName() + " " + state.validPreviousStates().stream()
                        .map(TransactionState::stateName).sorted().collect(Collectors.joining(",")));
                break;
            case "tick":
                nowMs = Long.parseLong(words[1]);
                coordinator.abortTimedOutTransactions(it -> (error, id, epoch) -> BoxedUnit.UNIT);
                break;
            default: throw new IllegalArgumentException(words[0]);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("process.roles", "broker");
        settings.put("node.id", "0");
        settings.put("controller.quorum.voters", "1@localhost:1");
        settings.put("controller.listener.names", "CONTROLLER");
        settings.put("listeners", "PLAINTEXT://localhost:0");
        TransactionConfig limits = new TransactionConfig(
            1, Integer.MAX_VALUE, 1, (short) 1, 1, 1, 1, 1, 1, false, 1);
        States states = new States(limits);
        ProducerIdManager ids = () -> freshProducerId;
        TransactionCoordinator coordinator = new TransactionCoordinator(
            limits, null, () -> ids, states, new Markers(new KafkaConfig(settings), states), new Clock(),
            new LogContext());
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder lines = new StringBuilder();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            output.clear();
            try {
                execute(coordinator, line.split(" "));
                describe();
            } catch (RuntimeException error) {
                output.clear();
                output.add("thrown " + error);
            }
            lines.append(String.join(" | ", output)).append('\n');
        }
        System.out.print(lines);
    }
}
