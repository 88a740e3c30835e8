"""DescribeTransactions, ListTransactions and DescribeProducers."""

import pytest

from conformance.transactions.observation import describe, ended, listed, producers, wait_for
from conformance.transactions.requests import (
    NONE,
    SECOND,
    Producer,
    add_offsets,
    add_partitions,
    end,
    init,
    produce,
    start,
    write,
    write_second,
)
from conformance.transactions.servers import START_S_MAX
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_producers import (
    DESCRIBE_PRODUCERS,
    DescribeProducersRequest,
    TopicToDescribe,
)
from kafscale.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
)

pytestmark = pytest.mark.timeout(START_S_MAX)

LIST_VERSIONS = [0, 1, 2]
STATES = [
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "PrepareEpochFence",
    "Dead",
]


@pytest.fixture
def transactions(client) -> dict[str, Producer]:
    """One transaction in each state that lasts."""
    names = ("empty", "ongoing", "committed", "aborted")
    found = {}
    for name in names:
        id_ = f"{client.transactional_id}-{name}"
        found[name] = start(client, transactional_id=id_)
        if name != "empty":
            added = add_partitions(client, found[name], transactional_id=id_)
            assert added == [NONE]
    for name in ("committed", "aborted"):
        id_ = f"{client.transactional_id}-{name}"
        end(client, found[name], transactional_id=id_, committed=name == "committed")
        wait_for(client, "CompleteCommit" if name == "committed" else "CompleteAbort", id_)
    return found


def test_describe_transactions(client, transactions):
    ids = [f"{client.transactional_id}-{name}" for name in transactions]
    describe(client, *ids)
    describe(client, *ids, ids[0], "unknown", "")
    client.call(DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest([]))


def test_partitions_of_groups_and_topics(client):
    producer = start(client)
    added = add_partitions(client, producer, partitions={client.topic: [2, 0]})
    assert added == [NONE, NONE]
    described = describe(client).transactions[0]
    assert described.transaction_state == "Ongoing"
    assert [each.partitions for each in described.topics] == [[0, 2]]


def test_group_in_a_transaction(client):
    """It is a partition of the offsets topic."""
    producer = start(client)
    assert add_offsets(client, producer) == NONE
    describe(client)
    ended(client, producer)


@pytest.mark.usefixtures("transactions")
@pytest.mark.parametrize("version", LIST_VERSIONS)
def test_list_by_state(client, version):
    listed(client, version)
    for state in STATES:
        listed(client, version, state_filters=[state])
    for states in (
        ["Empty", "Ongoing"],
        ["unknown"],
        ["Ongoing", "unknown", "ongoing", ""],
        ["EMPTY"],
        ["Empty", "Empty"],
        ["PrepareEpochFence", "Dead", "x"],
    ):
        listed(client, version, state_filters=states)


@pytest.mark.parametrize("version", LIST_VERSIONS)
def test_list_by_producer(client, transactions, version):
    ids = [producer.id for producer in transactions.values()]
    for filters in (ids[:1], ids[1:3], [987_654_321], [*ids[:1], -1]):
        listed(client, version, producer_id_filters=filters)
        listed(client, version, producer_id_filters=filters, state_filters=["Ongoing"])


@pytest.mark.usefixtures("transactions")
@pytest.mark.parametrize("version", LIST_VERSIONS)
@pytest.mark.parametrize("duration_ms", [-2, -1, 0, 3_600_000])
def test_list_by_duration(client, version, duration_ms):
    listed(client, version, duration_filter_ms=duration_ms)
    listed(client, version, duration_filter_ms=duration_ms, state_filters=["Ongoing"])


@pytest.mark.usefixtures("transactions")
@pytest.mark.parametrize("version", LIST_VERSIONS)
def test_list_by_pattern(client, version):
    patterns = (None, "", ".*", ".*ongoing", ".*(empty|aborted)", "ongoing", "[", "(?=x)", "^.*$")
    for pattern in patterns:
        listed(client, version, transactional_id_pattern=pattern)


# --- producers ----------------------------------------------------------------------------------


def test_producers_through_a_transaction(client):
    producer = start(client)
    producers(client)
    write(client, producer, values=[b"a", b"b"])
    producers(client)
    assert produce(client, producer, sequence=2).error_code == NONE
    producers(client)
    ended(client, producer)
    producers(client)
    write(client, producer, sequence=3)
    producers(client)
    ended(client, producer, committed=False)
    producers(client)
    write_second(client, producer, sequence=4)
    end(client, producer, SECOND)
    wait_for(client, "CompleteCommit")
    producers(client)


def test_producers_of_several_kinds(client):
    producer = start(client)
    write(client, producer)
    other = init(client, transactional_id=None)
    idempotent = Producer(other.producer_id, other.producer_epoch)
    plain = {"transactional": False, "transactional_id": None}
    produce(client, idempotent, sequence=5, **plain)
    produce(client, Producer(-1, -1), sequence=-1, **plain)
    producers(client)
    ended(client, producer)
    # This partition has only the marker of the next transaction.
    add_partitions(client, producer, partitions={client.topic: [1]}, patient=True)
    ended(client, producer)
    producers(client, (0, 1, 2))
    producers(client, (0, 0, 1, 0))


def test_unknown_partitions(client):
    topics = [
        TopicToDescribe(client.topic, [0, 3, -1]),
        TopicToDescribe("none", [0]),
        TopicToDescribe("", [0]),
        TopicToDescribe(client.topic, []),
        TopicToDescribe(client.topic, [0, 3, 3]),
    ]
    response = client.call(DESCRIBE_PRODUCERS, 0, DescribeProducersRequest(topics))
    codes = {each.error_code for topic in response.topics for each in topic.partitions}
    assert codes > {NONE}
    assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION in codes
