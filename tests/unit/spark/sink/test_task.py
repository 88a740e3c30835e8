"""A task encodes its rows as batches of the right partitions, in their order."""

import asyncio
from random import Random

import pyarrow as pa
import pytest

from kafscale.client.partitioner import partition_of
from kafscale.errors import InvalidRequestError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_configs import (
    DescribeConfigsResponse,
    DescribedConfig,
    DescribedResource,
)
from kafscale.protocol.messages.metadata import PartitionMetadata, TopicMetadata
from kafscale.records import BatchView, Codec, Header, iterate
from kafscale.spark.sink.delivery import collect
from kafscale.spark.sink.options import parse
from kafscale.spark.sink.task import TaskEncoder, TaskOutput

COUNT = 4
PARTITION = pa.int32()
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class Cluster:
    """A client, and its broker, on which every topic has the same partitions and configs."""

    def __init__(self, code=ErrorCode.NONE, message_bytes="1048588"):
        self.asked = 0
        self._code = code
        self._message_bytes = message_bytes

    def run(self, work):
        self.asked += 1
        return asyncio.run(work(self))

    async def topic(self, name, *, create):
        assert create
        return TopicMetadata(
            name=name, partitions=[PartitionMetadata(index=n) for n in range(COUNT)]
        )

    async def any_broker(self):
        return self

    def serves(self, _api):
        return True

    async def ask(self, _api, request):
        (resource,) = request.resources
        configs = [DescribedConfig(name, self._message_bytes) for name in resource.config_names]
        described = DescribedResource(self._code, configs=[] if self._code else configs)
        return DescribeConfigsResponse(resources=[described])


def encoder(topic="orders", cluster=None, **options):
    given = {"kafka.bootstrap.servers": "localhost", **options}
    parsed = parse(given | ({"topic": topic} if topic else {}))
    return TaskEncoder(parsed, cluster or Cluster(), "query", Random(1))


def rows(**columns):
    return pa.RecordBatch.from_pydict(columns)


def records(output):
    """The records of each partition."""
    return {
        key: [record for batch in batches for record in iterate(BatchView(batch))]
        for key, batches in output.batches.items()
    }


def test_records_go_to_the_partition_of_the_column_or_of_the_key():
    task = encoder()
    keys = [None if number % 5 == 0 else str(number) for number in range(50)]
    values = [None if number == 7 else b"%d" % number for number in range(50)]
    given = [number % COUNT if number % 3 == 0 else None for number in range(50)]
    task.add(rows(key=keys, value=values, partition=pa.array(given, PARTITION)))
    found = records(task.output)
    sticky = set()
    for (topic, index), written in found.items():
        assert topic == "orders"
        order = [values.index(record.value) for record in written]
        assert order == sorted(order)
        for number, record in zip(order, written, strict=True):
            key = keys[number] and keys[number].encode()
            assert record.key == key
            if given[number] is not None:
                assert index == given[number]
            elif key is None:
                sticky.add(index)
            else:
                assert index == partition_of(key, COUNT)
    assert len(sticky) == 1
    assert sum(map(len, found.values())) == 50


def test_topics_of_the_column_are_kept_apart():
    task = encoder("")
    topics = ["a", "b", "a"]
    headers = pa.array([[{"key": "h", "value": None}], None, []], HEADERS)
    for _ in range(2):
        task.add(rows(topic=topics, key=["k"] * 3, value=["1", "2", "3"], headers=headers))
    task.add(rows(topic=[], value=[]))
    index = partition_of(b"k", COUNT)
    found = records(task.output)
    assert {key: [record.value for record in each] for key, each in found.items()} == {
        ("a", index): [b"1", b"3", b"1", b"3"],
        ("b", index): [b"2", b"2"],
    }
    assert found["a", index][0].headers == (Header("h", None),)
    assert task._client.asked == 2


def test_option_topic_takes_precedence_over_the_column():
    task = encoder("orders")
    task.add(rows(topic=["a"], value=["1"]))
    assert [topic for topic, _ in task.output.batches] == ["orders"]


@pytest.mark.parametrize("codec", Codec)
def test_batches_keep_the_maximum_of_the_topic(codec):
    options = {"kafka.compression.type": codec.name.lower()}
    values = [Random(number).randbytes(500) for number in range(400)]
    for cluster, bytes_max in (
        (Cluster(message_bytes="65536"), 65_536),
        (Cluster(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "65536"), 1_048_588),
    ):
        task = encoder(cluster=cluster, **options)
        task.add(rows(key=["k"] * 400, value=values))
        ((_, batches),) = task.output.batches.items()
        (written,) = records(task.output).values()
        assert [each.value for each in written] == values
        assert max(map(len, batches)) <= bytes_max
        assert len(batches) == -(-(400 * 510) // bytes_max)


def test_output_above_the_limit_of_results_is_rejected():
    given = parse({"kafka.bootstrap.servers": "localhost", "topic": "orders"})
    task = TaskEncoder(given, Cluster(), "query", Random(1), size_bytes_max=2_000)
    one = rows(key=["k"], value=[Random(1).randbytes(500)])
    for _ in range(3):
        task.add(one)
    with pytest.raises(InvalidRequestError, match=r"2000 bytes .* higher spark.driver.maxResult"):
        task.add(one)


@pytest.mark.parametrize("partition", [-1, COUNT])
def test_partition_that_does_not_exist_is_rejected(partition):
    with pytest.raises(InvalidRequestError, match=f"has 4 partitions, but .* {partition}"):
        encoder().add(rows(value=["1", "2"], partition=pa.array([None, partition], PARTITION)))


def test_output_of_tasks_is_collected_in_their_order():
    tasks = [encoder() for _ in range(3)]
    for number, task in enumerate(tasks):
        for each in range(number):
            task.add(rows(key=["k"], value=[f"{number}-{each}"]))
    query_id, batches = collect(task.output for task in tasks)
    merged = records(TaskOutput("", dict(batches)))
    assert query_id == "query"
    assert [record.value for record in merged["orders", partition_of(b"k", COUNT)]] == [
        b"1-0",
        b"2-0",
        b"2-1",
    ]


def test_missing_output_is_not_committed():
    with pytest.raises(InvalidRequestError, match="a task has no result"):
        collect([TaskOutput("query"), None])
