"""kcat as a producer, a consumer and for metadata."""

import json

import pytest

from services import kcat

pytestmark = pytest.mark.timeout(120)  # The first run downloads kcat.


@pytest.fixture(autouse=True)
def _kcat():
    if not kcat.is_available():
        pytest.skip("no kcat here, and no apt to fetch it with")


def test_kcat_consumes_what_it_produced(broker, topic):
    lines = b"".join(b"key%d:value %d\n" % (number, number) for number in range(100))
    kcat.run("-b", broker.address, "-P", "-t", topic, "-K:", "-z", "snappy", stdin=lines)
    read = kcat.run(
        "-b", broker.address, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-K:"
    )
    assert read == lines
    last = kcat.run("-b", broker.address, "-C", "-t", topic, "-p", "0", "-o", "-1", "-e", "-q")
    assert last == b"value 99\n"


def test_kcat_lists_brokers_and_topics(broker, wire, topic):
    wire.create(topic, 3)
    listed = json.loads(kcat.run("-b", broker.address, "-L", "-J"))
    assert [each["name"] for each in listed["brokers"]] == [broker.address]
    partitions = {each["topic"]: len(each["partitions"]) for each in listed["topics"]}
    assert partitions[topic] == 3


def test_kcat_queries_offsets_by_timestamp(broker, topic):
    kcat.run("-b", broker.address, "-P", "-t", topic, stdin=b"one\ntwo\n")
    assert b"offset 0" in kcat.run("-b", broker.address, "-Q", "-t", f"{topic}:0:1")
