import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.metadata.schema import keys

TOPICS = st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True)
GROUPS = st.text(max_size=20)
PARTITIONS = st.integers(0, 2**31 - 1)
NUMBERS = st.integers(0, 2**63 - 1)


@pytest.mark.parametrize(
    ("key", "meaning"),
    [
        ("/kafscale/topics/orders/config", keys.TopicConfigKey("orders")),
        ("/kafscale/topics/orders/partitions/7", keys.PartitionStateKey("orders", 7)),
        ("/kafscale/consumers/billing/metadata", keys.ConsumerGroupKey("billing")),
        (
            "/kafscale/consumers/billing/offsets/orders/7",
            keys.CommittedOffsetKey("billing", "orders", 7),
        ),
        ("/kafscale/consumers/billing/transactions/7/12", keys.PendingOffsetsKey("billing", 7, 12)),
        ("/kafscale/transactions/billing", keys.TransactionalIdKey("billing")),
        ("/kafscale/brokers/broker-2", keys.BrokerKey(2)),
        ("/kafscale/assignments/orders/7", keys.AssignmentKey("orders", 7)),
        ("/kafscale/counters/broker-epoch/0", keys.CounterKey("broker-epoch/0")),
        ("/kafscale/deletions/orders", keys.DeletionKey("orders")),
    ],
)
def test_keys_equal_the_published_schema(key, meaning):
    assert keys.parse(key) == meaning
    assert key_of(meaning) == key


def key_of(meaning):  # noqa: C901 - one case per key type.
    match meaning:
        case keys.TopicConfigKey(topic):
            return keys.topic_config(topic)
        case keys.PartitionStateKey(topic, partition):
            return keys.partition_state(topic, partition)
        case keys.ConsumerGroupKey(group):
            return keys.consumer_group(group)
        case keys.CommittedOffsetKey(group, topic, partition):
            return keys.committed_offset(group, topic, partition)
        case keys.PendingOffsetsKey(group, producer_id, number):
            return keys.pending_offsets(group, producer_id, number)
        case keys.TransactionalIdKey(transactional_id):
            return keys.transactional_id(transactional_id)
        case keys.BrokerKey(broker_id):
            return keys.broker(broker_id)
        case keys.AssignmentKey(topic, partition):
            return keys.assignment(topic, partition)
        case keys.CounterKey(name):
            return keys.counter(name)
        case keys.DeletionKey(topic):
            return keys.deletion(topic)
    raise AssertionError(meaning)


@given(
    st.one_of(
        st.builds(keys.TopicConfigKey, TOPICS),
        st.builds(keys.PartitionStateKey, TOPICS, PARTITIONS),
        st.builds(keys.ConsumerGroupKey, GROUPS),
        st.builds(keys.CommittedOffsetKey, GROUPS, TOPICS, PARTITIONS),
        st.builds(keys.PendingOffsetsKey, GROUPS, NUMBERS, NUMBERS),
        st.builds(keys.TransactionalIdKey, GROUPS),
        st.builds(keys.BrokerKey, PARTITIONS),
        st.builds(keys.AssignmentKey, TOPICS, PARTITIONS),
        st.builds(keys.DeletionKey, TOPICS),
    )
)
def test_keys_round_trip(meaning):
    assert keys.parse(key_of(meaning)) == meaning


WORDS = ["topics", "consumers", "brokers", "assignments", "counters", "deletions", "metadata"]
MORE_WORDS = ["config", "partitions", "offsets", "orders", "snapshot", "transactions"]
TRAPS = ["", "0", "00", "7", "-1", "٣", "%2F", "%2f", "%25", "%"]
PARTS = st.sampled_from(WORDS + MORE_WORDS + TRAPS)


@given(st.lists(PARTS, max_size=6))
def test_parsed_key_rebuilds_the_same_key(parts):
    key = "/kafscale/" + "/".join(parts)
    meaning = keys.parse(key)
    assert meaning is None or key_of(meaning) == key


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/",
        "/kafscale",
        "/kafscale/topics/orders",
        "/kafscale/topics//config",
        "/kafscale/topics/orders/partitions/x",
        "/kafscale/topics/orders/partitions/07",
        "/kafscale/topics/orders/partitions/7/more",
        "/kafscale/consumers/100%/metadata",
        "/kafscale/consumers/billing/transactions/7",
        "/kafscale/consumers/billing/transactions/7/-1",
        "/kafscale/transactions/100%",
        "/kafscale/counters/",
        "/other/topics/orders/config",
        keys.SNAPSHOT,
        keys.allocated_broker_id("host:9092"),
        keys.CLUSTER_ID,
    ],
)
def test_foreign_keys_are_not_parsed(key):
    assert keys.parse(key) is None


def test_prefixes_cover_their_keys():
    assert keys.partition_state("orders", 1).startswith(keys.partition_states("orders"))
    assert keys.partition_states("orders").startswith(keys.topic("orders"))
    assert keys.topic_config("orders").startswith(keys.topic("orders"))
    assert not keys.topic_config("orders2").startswith(keys.topic("orders"))
    assert keys.assignment("orders", 1).startswith(keys.assignments("orders"))
    assert keys.committed_offset("g", "orders", 1).startswith(keys.committed_offsets("g"))
    assert keys.pending_offsets("g", 1, 2).startswith(keys.group_transactions("g"))
    assert keys.transactional_id("t").startswith(keys.TRANSACTIONS)


def test_any_id_is_escaped():
    assert keys.consumer_group("a/b%c") == "/kafscale/consumers/a%2Fb%25c/metadata"
    assert keys.transactional_id("a/b%c") == "/kafscale/transactions/a%2Fb%25c"
    assert keys.parse(keys.consumer_group("")) == keys.ConsumerGroupKey("")
