"""Tests of `kafscale sql` on Spark, with stored topics and with a broker."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from kafscale.cli.main import app
from kafscale.errors import DamagedObjectError
from kafscale.records import Record, build
from kafscale.records.batch import BatchView
from kafscale.records.record import Header
from kafscale.spark.read.location import Location
from kafscale.spark.sql.engine import QueryError, SqlEngine
from kafscale.storage import topic_catalog
from kafscale.storage.formats import object_keys, segment, wal_object

NAMESPACE = "default"
START_MS = 1_700_000_000_000
"""2023-11-14 22:13:20 UTC."""


SUBQUERY = "select (select count(*) from orders where _offset > 250), count(*) from orders"
UNION = """select count(*) from
 (select id from orders where _offset > 250 union all select id from orders)"""
JOIN = """with some as (select * from orders)
select count(*) from some a join some b on a.id = b.id + 1 where a._offset > 250"""


def order(offset: int) -> bytes:
    status = "paid" if offset % 3 else "open"
    return json.dumps({"id": offset, "status": status, "item": {"price": offset * 1.5}}).encode()


def put(location: Location, topic: str, offsets: range, partition: int = 0, value=order) -> str:
    """Store a segment with records a second apart; return its key."""
    builder = segment.Builder(START_MS, 1, compression=None, prior_max_timestamp_ms=-1)
    for offset in offsets:
        created = Record(
            offset,
            START_MS + offset * 1000,
            b"key %d" % offset,
            value(offset),
            (Header("trace", b"%d" % offset),),
        )
        builder.append(BatchView(build([created])))
    built = builder.finish()
    key = object_keys.segment_key(NAMESPACE, topic, partition, offsets.start)
    with location.open() as store:
        store.put(key, built.parts)
        store.put(object_keys.index_key(NAMESPACE, topic, partition, offsets.start), [built.index])
    return key


@pytest.fixture
def location(tmp_path) -> Location:
    (tmp_path / "objects").mkdir()
    return Location.parse(str(tmp_path))


@pytest.fixture
def orders(location) -> list[str]:
    """Store three segments with 100 records each; return their keys."""
    return [put(location, "orders", range(start, start + 100)) for start in (0, 100, 200)]


@pytest.fixture
def topics(spark, location) -> SqlEngine:
    return SqlEngine(spark, location)


def run_query(topics: SqlEngine, statement: str) -> list[Sequence[object]]:
    return list(map(tuple, topics.run(statement).rows))


def damage(location: Location, key: str) -> None:
    """Damage the batches of a segment, but not its footer and index."""
    path = Path(location.directory) / key
    data = bytearray(path.read_bytes())
    data[segment.HEADER_BYTES + 61 : -segment.FOOTER_BYTES] = bytes(len(data) - 61 - 48)
    path.write_bytes(data)


@pytest.mark.usefixtures("orders")
def test_columns_of_a_topic(topics):
    result = topics.run("select * from orders where id = 7")
    assert result.columns == (
        "id",
        "status",
        "item",
        "_key",
        "_value",
        "_topic",
        "_partition",
        "_offset",
        "_timestamp",
        "_headers",
    )
    (row,) = result.rows
    assert row[:3] == (7, "paid", {"price": 10.5})
    assert row[3:8] == ("key 7", order(7).decode(), "orders", 0, 7)
    assert row[8].timestamp() * 1000 == START_MS + 7000
    assert row[9] == [{"key": "trace", "value": b"7"}]


@pytest.mark.usefixtures("orders")
def test_group_by_and_join(topics, location):
    put(location, "page-views.v1", range(50), value=lambda offset: b'{"id": %d}' % (offset * 2))
    assert run_query(topics, "select status, count(*) from orders group by 1 order by 1") == [
        ("open", 100),
        ("paid", 200),
    ]
    joined = "select count(*) from orders join `page-views.v1` views on orders.id = views.id"
    assert run_query(topics, joined) == [(50,)]


def test_filters_skip_segments(topics, location, orders):
    for key in orders[:2]:
        damage(location, key)
    counts = {
        "_offset >= 250": 50,
        "_offset between 260 and 269": 10,
        "_offset in (205, 299)": 2,
        "_timestamp >= timestamp'2023-11-14 22:17:00Z'": 80,
        "_partition = 5": 0,
    }
    for condition, count in counts.items():
        counted = f"select count(*) from orders where {condition}"  # noqa: S608 - it is ours.
        assert run_query(topics, counted) == [(count,)], condition
    with pytest.raises(QueryError, match="segment-0"):
        run_query(topics, "select count(*) from orders")


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        pytest.param(SUBQUERY, (49, 300), id="subquery", marks=pytest.mark.long),
        pytest.param(UNION, (349,), id="union"),
        pytest.param(JOIN, (49,), id="join", marks=pytest.mark.long),
    ],
)
def test_filters_are_not_pushed_down_if_a_topic_is_read_twice(topics, statement, expected):
    assert run_query(topics, statement) == [expected]


@pytest.mark.usefixtures("orders")
def test_statements_see_new_records(topics, location):
    count = "select count(*), max(id) from orders"
    assert run_query(topics, count) == [(300, 299)]
    put(location, "orders", range(300, 320))
    assert run_query(topics, count) == [(320, 319)]
    assert run_query(topics, "create or replace temp view paid as select * from orders") == []
    put(location, "orders", range(320, 330))
    assert run_query(topics, "select count(*) from paid") == [(330,)]


def test_columns_of_a_topic_that_was_empty(topics, location):
    catalog = topic_catalog.encode([topic_catalog.CatalogTopic("new", "00" * 16, 1)])
    with location.open() as store:
        store.put(object_keys.catalog_key(NAMESPACE), [catalog])
    assert run_query(topics, "select _offset, _value from new") == []
    put(location, "new", range(5))
    assert run_query(topics, "select sum(id) from new") == [(10,)]


@pytest.mark.usefixtures("orders")
def test_unused_columns_are_not_read(topics, capfd):
    planned = topics.query("select _offset from orders where status = 'open'")
    planned.explain()
    scan = next(line for line in capfd.readouterr().out.splitlines() if "BatchScan" in line)
    assert "value" in scan
    assert "offset" in scan
    assert "key" not in scan
    assert "headers" not in scan
    assert planned.count() == 100


def test_values_that_are_not_json(topics, location):
    put(location, "lines", range(3), value=lambda offset: b"line %d" % offset)
    put(location, "blobs", range(3), value=lambda offset: bytes([255, offset]))
    assert run_query(topics, "select _value from lines order by _offset limit 1") == [("line 0",)]
    assert run_query(topics, "select _value from blobs order by _offset limit 1") == [
        (b"\xff\x00",)
    ]
    kinds = dict(row[:2] for row in run_query(topics, "describe blobs"))
    assert (kinds["_key"], kinds["_value"], kinds["_offset"]) == ("string", "binary", "bigint")


@pytest.mark.usefixtures("orders")
def test_show_tables_and_describe(topics, location):
    put(location, "other", range(7))
    put(location, "other", range(5), partition=1)
    shown = topics.run("show tables")
    assert shown.columns == ("topic", "partitions", "offsets", "bytes")
    assert [row[:3] for row in shown.rows] == [("orders", 1, 300), ("other", 2, 12)]
    assert [row[0] for row in topics.run("show tables like 'ord*'").rows] == ["orders"]
    assert run_query(topics, "describe orders")[0][:2] == ("id", "bigint")


@pytest.mark.usefixtures("orders")
def test_damaged_transactions_of_a_topic_do_not_concern_others(topics, location):
    batch = build([Record(0, 1, None, b"{}")], producer_id=1, transactional=True)
    batch[-1] ^= 1
    data = wal_object.PartitionData(b"i" * 16, "payments", 0, batch, 0, 0, 1, is_transactional=True)
    with location.open() as store:
        key = object_keys.wal_key(NAMESPACE, 0, 0, 0)
        store.put(key, wal_object.encode(wal_object.Header(0, 0, 0, 0), [data]))
    assert run_query(topics, "select count(*) from orders") == [(300,)]
    assert [row[0] for row in topics.run("show tables").rows] == ["orders", "payments"]
    with pytest.raises(DamagedObjectError):
        topics.run("select * from payments")


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("select * from ordres", "there is no topic ordres; did you mean orders?"),
        ("select * from x", "there is no topic x; `show tables` lists all topics"),
        ("select * from a.b", "the topic name a.b contains dots: write `a.b`"),
        ("select stats from orders", "name `stats` cannot be resolved"),
        ("selct 1", "Syntax error at or near 'selct'. (line 1, position 1)"),
        ("select 1 / 0", "Division by zero."),
    ],
)
def test_errors_are_one_sentence(topics, location, statement, message):
    put(location, "a.b", range(1))
    with pytest.raises(QueryError) as caught:
        topics.run(statement)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "SQLSTATE" not in str(caught.value)


def test_acknowledged_records_are_visible(spark, start_broker, topic):
    broker = start_broker()
    producer = Producer({"bootstrap.servers": broker.address, "compression.type": "zstd"})
    for number in range(1000):
        producer.produce(topic, order(number), key=f"{number}")
    producer.flush()
    topics = SqlEngine(spark, Location.parse(str(broker.data)))
    counted = f"select count(distinct id), sum(item.price) from `{topic}`"  # noqa: S608
    assert run_query(topics, counted) == [(1000, sum(number * 1.5 for number in range(1000)))]


# --- the command ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("spark", "orders")
def test_command_prints_tables_and_json(location, tmp_path):
    def run(*arguments: str) -> tuple[int, str, str]:
        path = str(Path(location.directory).parent)
        done = CliRunner().invoke(app, ["sql", "--path", path, *arguments])
        return done.exit_code, done.stdout, done.stderr

    query = "select id, item, _timestamp from orders where _offset < 2 order by id"
    code, out, _ = run(query, "-o", "json")
    assert code == 0
    assert json.loads(out)[1] == {
        "id": 1,
        "item": {"price": 1.5},
        "_timestamp": "2023-11-14T22:13:21Z",
    }
    _, out, _ = run("select id, item from orders where id < 2 order by id", "-o", "csv")
    assert out == 'id,item\n0,"{""price"": 0.0}"\n1,"{""price"": 1.5}"\n'
    _, out, _ = run("select id from orders", "--limit", "5")
    assert "5 rows (limited by --limit 5)" in out
    script = tmp_path / "script.sql"
    script.write_text("show tables; -- all of them\nselect count(*) from orders;\n")
    _, out, _ = run("--file", str(script), "-o", "csv")
    assert out.splitlines()[2:] == ["count(1)", "300"]
    code, out, err = run("select nope from orders")
    assert (code, out) == (1, "")
    assert err.startswith("error: A column")
