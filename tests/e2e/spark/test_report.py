"""Tests of `kafscale spark report` with a real broker and clients."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from typer.testing import CliRunner

from kafscale.cli.main import app
from services.broker import BrokerProcess
from services.waiting import wait_until

ORDERS = 6000
VALUE = b'{"status": "paid", "note": "the same again and again and again and again and again"}'


@pytest.fixture
def broker(start_broker) -> Iterator[BrokerProcess]:
    """A broker with two topics; a group has read a part of one."""
    running = start_broker(segment_bytes="16384", group_initial_rebalance_delay_ms="0")
    write(running.address, "orders", "lz4", ORDERS)
    write(running.address, "page-views", "none", 500)
    read_some(running.address)
    wait_until(lambda: running.objects("**/orders/0/*.kfs"), "a segment")
    return running


def write(address: str, topic: str, codec: str, count: int) -> None:
    producer = Producer(
        {"bootstrap.servers": address, "compression.type": codec, "batch.size": 20_000}
    )
    for number in range(count):
        producer.produce(topic, VALUE, key=f"{number}")
        producer.poll(0)
    producer.flush()


def read_some(address: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "billing",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    left = 1000
    while left:
        left -= len(consumer.consume(left, 10))
    consumer.commit(asynchronous=False)
    consumer.close()


def run(broker: BrokerProcess, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(
        app, ["spark", "report", "--path", str(broker.data), *arguments], env={"COLUMNS": "250"}
    )
    return done.exit_code, done.stdout


@pytest.mark.usefixtures("spark")
def test_report_counts_written_and_read_records(broker, tmp_path):
    page = tmp_path / "report.html"
    code, out = run(broker, "-o", "json", "--html", str(page), "-b", broker.address)
    assert code == 0
    result = json.loads(out)
    orders, views = result["topics"]
    assert (orders["topic"], orders["records"]) == ("orders", ORDERS)
    assert (views["topic"], views["records"]) == ("page-views", 500)
    assert orders["codecs"] == {"lz4": 1.0}
    assert orders["compression"] > 2
    segments = broker.objects("**/orders/*/*.kfs")
    assert 0 < orders["segments"] <= len(segments)
    assert orders["oldestMs"] <= orders["newestMs"] <= result["timeMs"]
    assert result["lags"] == [
        {"group": "billing", "topic": "orders", "lag": ORDERS - 1000, "partitions": 1}
    ]
    assert [profile["name"] for profile in result["profiles"]][-2:] == ["latency", "cost"]
    assert "page-views" in page.read_text()
    code, out = run(broker, "--topic", "orders", "--storage-price", "1000000")
    assert code == 0
    assert "6,000" in out
    assert "page-views" not in out


@pytest.mark.usefixtures("spark")
def test_report_fails_on_a_damaged_segment(broker):
    damaged: Path = broker.objects("**/orders/0/*.kfs")[0]
    broker.terminate()
    damaged.write_bytes(b"nonsense" + damaged.read_bytes()[8:])
    done = CliRunner().invoke(app, ["spark", "report", "--path", str(broker.data), "-o", "json"])
    assert done.exit_code == 1
    assert damaged.name in done.stderr
    assert len(json.loads(done.stdout)["damaged"]) == 1
