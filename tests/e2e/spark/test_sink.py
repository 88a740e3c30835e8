"""`write` and `writeStream` of the format `kafscale`: whole batches, each exactly once."""

from random import Random

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient

from kafscale.spark import register
from services import spark_copy
from services.committed_records import read_messages
from services.kafka_records import Sent, count_offsets, create, produce
from services.spark_driver import SparkDriver

PATIENCE_S = 120
START_MS = 1_700_000_000_000


@pytest.fixture
def session(spark):
    register(spark)
    return spark


@pytest.fixture
def sink(broker):
    """The options of a sink for the shared broker."""
    return {"kafka.bootstrap.servers": broker.address}


def written(address, topic, *, isolation="read_committed"):
    """The key, value and headers of each record, by partition."""
    return {
        partition: [(each.key(), each.value(), each.headers() or []) for each in messages]
        for partition, messages in read_messages(address, topic, isolation=isolation).items()
    }


def values_of(records):
    return sorted(value for each in records.values() for _, value, _ in each)


# --- batches --------------------------------------------------------------------------------------


def test_batch_with_all_columns(session, broker, sink, topic):
    create(broker.address, f"{topic}-a", 3)
    create(broker.address, f"{topic}-b", 3)
    frame = session.range(0, 20, 1, 3).selectExpr(
        f"concat('{topic}-', element_at(array('a', 'b'), cast(id % 2 AS int) + 1)) AS topic",
        "if(id < 4, cast(id % 3 AS int), NULL) AS partition",
        "if(id = 0, NULL, string(id)) AS key",
        "if(id = 1, NULL, binary(concat('value ', id))) AS value",
        "if(id = 2, array(named_struct('key', 'h', 'value', binary('1'))), NULL) AS headers",
        "'ignored' AS other",
    )
    frame.write.format("kafscale").mode("append").options(**sink).save()
    found = written(broker.address, f"{topic}-a"), written(broker.address, f"{topic}-b")
    assert found[0][0][0] == (None, b"value 0", [])
    assert found[1][1][0] == (b"1", None, [])
    assert found[0][2][0] == (b"2", b"value 2", [("h", b"1")])
    assert found[1][0][0] == (b"3", b"value 3", [])
    everything = [each for topics in found for records in topics.values() for each in records]
    assert sorted(int(key) for key, _, _ in everything if key) == list(range(1, 20))


def test_keys_go_to_the_partitions_of_other_producers(session, broker, sink, topic):
    create(broker.address, topic, 5)
    frame = session.range(100).selectExpr("string(id) AS key", "string(id) AS value")
    frame.write.format("kafscale").mode("append").options(**sink, topic=topic).save()
    producer = Producer({"bootstrap.servers": broker.address, "partitioner": "murmur2_random"})
    for number in range(100):
        producer.produce(topic, b"again", key=str(number).encode())
    assert producer.flush(30) == 0
    homes = {
        (key, partition)
        for partition, records in written(broker.address, topic).items()
        for key, _, _ in records
    }
    assert len(homes) == 100


def test_failing_task_leaves_nothing(session, broker, sink, topic):
    create(broker.address, topic, 2)
    frame = session.range(0, 1000, 1, 4).selectExpr(
        "if(id = 999, raise_error('on purpose'), string(id)) AS value"
    )
    with pytest.raises(Exception, match="on purpose"):
        frame.write.format("kafscale").mode("append").options(**sink, topic=topic).save()
    assert written(broker.address, topic, isolation="read_uncommitted") == {0: [], 1: []}


def test_rejected_record_leaves_nothing_visible(session, broker, sink, topic):
    create(broker.address, topic, 1, max_message_bytes="1000")
    frame = session.range(0, 100, 1, 4).selectExpr(
        "if(id = 99, concat_ws('', transform(sequence(1, 2000), x -> uuid())), 'small') AS value"
    )
    with pytest.raises(Exception, match="MESSAGE_TOO_LARGE"):
        frame.write.format("kafscale").mode("append").options(**sink, topic=topic).save()
    assert written(broker.address, topic) == {0: []}


def test_small_records_are_written_below_a_small_maximum(session, broker, sink, topic):
    create(broker.address, topic, 1, max_message_bytes="65536")
    frame = session.range(0, 1000, 1, 2).selectExpr(
        "concat_ws('', transform(sequence(1, 10), x -> uuid())) AS value"
    )
    frame.write.format("kafscale").mode("append").options(**sink, topic=topic).save()
    assert len(set(values_of(written(broker.address, topic)))) == 1000


def test_task_above_the_limit_of_results_says_what_to_raise(session, broker, sink, topic):
    create(broker.address, topic, 1)
    # Spark would let no session change the setting; its own limit remains as it is.
    settings = {
        "spark.sql.legacy.setCommandRejectsSparkCoreConfs": "false",
        "spark.driver.maxResultSize": "100k",
    }
    frame = session.range(0, 500, 1, 1).selectExpr(
        "concat_ws('', transform(sequence(1, 20), x -> uuid())) AS value"
    )
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        with pytest.raises(Exception, match=r"102400 bytes .* higher spark.driver.maxResultSize"):
            frame.write.format("kafscale").mode("append").options(**sink, topic=topic).save()
    finally:
        for name in reversed(settings):
            session.conf.unset(name)
    assert written(broker.address, topic, isolation="read_uncommitted") == {0: []}


@pytest.mark.parametrize(
    ("columns", "options", "problem"),
    [
        ("id AS value", {"topic": "orders"}, "column value has type bigint"),
        ("string(id) AS key", {"topic": "orders"}, "the column value is missing"),
        ("string(id) AS value", {}, "set the option topic, or add a column"),
        ("string(id) AS value, NULL AS topic", {}, "column topic has type void"),
        ("string(id) AS value, string(NULL) AS topic", {}, "a row has no topic"),
        ("string(id) AS value", {"topics": "orders"}, "did you mean topic?"),
    ],
)
def test_invalid_writes_are_rejected(session, sink, columns, options, problem):
    frame = session.range(3).selectExpr(*columns.split(", "))
    with pytest.raises(Exception, match=problem):
        frame.write.format("kafscale").mode("append").options(**sink, **options).save()


def test_topic_cannot_be_overwritten(session, sink):
    frame = session.range(3).selectExpr("string(id) AS value")
    with pytest.raises(Exception, match="use mode append"):
        frame.write.format("kafscale").mode("overwrite").options(**sink, topic="orders").save()


# --- streams --------------------------------------------------------------------------------------


def forget(log, *numbers):
    """Remove micro-batches from a log of a checkpoint."""
    for number in numbers:
        (log / str(number)).unlink()
        (log / f".{number}.crc").unlink(missing_ok=True)


def test_stream_writes_each_micro_batch_once(session, broker, sink, topic, tmp_path):
    create(broker.address, topic, 3)
    source = tmp_path / "source"
    checkpoint = tmp_path / "checkpoint"

    def run(first):
        lines = "\n".join(map(str, range(first, first + 50)))
        source.mkdir(exist_ok=True)
        (source / f"{first}.txt").write_text(lines)
        frame = session.readStream.option("maxFilesPerTrigger", 1).text(str(source))
        query = (
            frame.writeStream.format("kafscale")
            .options(**sink, topic=topic, checkpointLocation=str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(PATIENCE_S)
        return query.id

    run(0)
    run(50)
    # As if the driver had been killed before Spark noted that the micro-batch was done.
    forget(checkpoint / "commits", 1)
    query_id = run(100)
    expected = sorted(str(number).encode() for number in range(150))
    assert values_of(written(broker.address, topic)) == expected
    admin = AdminClient({"bootstrap.servers": broker.address})
    request = ConsumerGroupTopicPartitions(f"kafscale-spark-{query_id}")
    (group,) = admin.list_consumer_group_offsets([request]).values()
    assert [each.offset for each in group.result().topic_partitions] == [3]
    for name in ("offsets", "commits"):
        forget(checkpoint / name, 1, 2)
    with pytest.raises(Exception, match="the checkpoint was copied or rolled back"):
        run(150)
    assert values_of(written(broker.address, topic)) == expected


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("seed", "kills"), [(1, 4), pytest.param(2, 16, marks=pytest.mark.long)])
def test_stream_with_killed_drivers_and_workers(broker, topic, tmp_path, seed, kills):
    target = f"{topic}-copy"
    create(broker.address, topic, 2, retention_ms="-1")
    create(broker.address, target, 3)
    records = [
        Sent(number % 2, b"key-%d" % (number % 10), b"%d" % number, START_MS)
        for number in range(kills * 120)
    ]
    produce(broker.address, topic, records)
    command = spark_copy.command(broker, topic, target, tmp_path / "checkpoint")
    with SparkDriver(command, tmp_path / "driver.log") as driver:
        driver.kill_repeatedly(kills, Random(seed), lambda: count_offsets(broker.address, target))
        driver.finish()
        assert driver.starts > kills // 2
        assert driver.workers_killed
    found = written(broker.address, target)
    assert sorted(int(value) for value in values_of(found)) == list(range(len(records)))
    for each in found.values():
        by_key = {}
        for key, value, _ in each:
            by_key.setdefault(key, []).append(int(value))
        assert all(values == sorted(values) for values in by_key.values())
