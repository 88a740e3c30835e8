r"""The metrics of a broker: scrape `/metrics`, parse the text format, compute quantiles.

>>> exposition = Exposition('# HELP x Why.\n# TYPE x gauge\nx{topic="a",partition="0"} 2\n')
>>> list(exposition.samples("x", "topic"))
[(('a',), 2.0)]

Invariants:

* `scrape` has a time limit and a size limit: a broker can cost neither much time nor much memory.
* Parsing a family costs nothing for the others. A broker with many partitions exposes tens of
  thousands of series, and is scraped every few seconds.
* Lines that cannot be parsed are skipped, so that brokers of other versions can be read.
* Counters are returned as they are. Rates need two samples and are computed by the caller.
"""

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Final

import msgspec

from kafscale.errors import KafscaleError
from kafscale.net.address import Address
from kafscale.text.topic_partition import TopicPartition

RESPONSE_BYTES_MAX: Final = 64 * 1024 * 1024
_HEAD_BYTES_MAX: Final = 64 * 1024
_CONTENT_LENGTH: Final = b"content-length:"

_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = re.compile(r"\\(.)")
_UNESCAPED: Final = {"n": "\n"}

Labels = tuple[str, ...]
OTHER: Final[TopicPartition] = ("", -1)
"""All partitions that a broker with very many of them exposes as one series."""
Buckets = Sequence[tuple[float, float]]
"""Upper bounds in ascending order, each with its cumulative count; the last bound is infinite."""


class ScrapeError(KafscaleError):
    """The metrics of a broker could not be read."""


class StoreOperation(msgspec.Struct, frozen=True):
    """The requests of one type to the object store since the broker started."""

    succeeded: int = 0
    failed: int = 0
    buckets: tuple[tuple[float, int], ...] = ()
    """Latency histogram: upper bound in seconds and cumulative count; the last is infinite."""

    @property
    def total(self) -> int:
        return self.succeeded + self.failed


class PartitionLag(msgspec.Struct, frozen=True):
    """The lag of a group in one partition, in records."""

    group: str
    topic: str
    partition: int
    lag: int


class BrokerMetrics(msgspec.Struct, frozen=True):
    """The metrics of one broker at one time."""

    connections: int | None
    error_rate: float | None
    produce_requests: int
    fetch_requests: int
    produce_bytes: dict[TopicPartition, int]
    fetch_bytes: dict[TopicPartition, int]
    stored_bytes: dict[TopicPartition, int]
    dirty_ratios: dict[str, float]
    """By compacted topic."""
    operations: dict[str, StoreOperation]
    lags: tuple[PartitionLag, ...]


# --- scraping -------------------------------------------------------------------------------------


async def scrape(address: Address, seconds_max: float) -> str:
    """GET `/metrics` of a broker over HTTP/1.1."""
    try:
        async with asyncio.timeout(seconds_max):
            reader, writer = await asyncio.open_connection(
                address.host, address.port, limit=_HEAD_BYTES_MAX
            )
            try:
                return await _get(reader, writer, address)
            finally:
                writer.transport.abort()
    except TimeoutError:
        raise ScrapeError(
            f"timed out scraping /metrics of {address} after {seconds_max:g} s"
        ) from None
    except (OSError, EOFError, asyncio.LimitOverrunError) as error:
        raise ScrapeError(f"cannot scrape /metrics of {address}: {error}") from None


async def _get(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: Address) -> str:
    writer.write(f"GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    status, *headers = head.split(b"\r\n")
    if status.split(b" ")[1:2] != [b"200"]:
        status_line = status.decode(errors="replace")[:100]
        raise ScrapeError(f"cannot scrape /metrics of {address}: {status_line}")
    lengths = [
        header.partition(b":")[2]
        for header in headers
        if header.lower().startswith(_CONTENT_LENGTH)
    ]
    size_bytes = int(lengths[0]) if lengths and lengths[0].strip().isdigit() else -1
    if not 0 <= size_bytes <= RESPONSE_BYTES_MAX:
        raise ScrapeError(
            f"cannot scrape /metrics of {address}: Content-Length is missing, invalid or above"
            f" {RESPONSE_BYTES_MAX}"
        )
    return (await reader.readexactly(size_bytes)).decode(errors="replace")


# --- parsing --------------------------------------------------------------------------------------


def parse(exposition: "Exposition") -> BrokerMetrics:
    """Extract the metrics that are used here from everything that a broker exposes."""
    connections = exposition.value("kafscale_active_connections")
    requests = {"Produce": 0, "Fetch": 0}
    for (api,), count in exposition.samples("kafscale_requests_total", "api"):
        if api in requests:
            requests[api] += int(count)
    return BrokerMetrics(
        connections=None if connections is None else int(connections),
        error_rate=exposition.value("kafscale_s3_error_rate"),
        produce_requests=requests["Produce"],
        fetch_requests=requests["Fetch"],
        produce_bytes=_by_partition(exposition, "kafscale_produce_bytes_total"),
        fetch_bytes=_by_partition(exposition, "kafscale_fetch_bytes_total"),
        stored_bytes=_by_partition(exposition, "kafscale_stored_bytes"),
        dirty_ratios={
            topic: ratio
            for (topic,), ratio in exposition.samples("kafscale_compaction_dirty_ratio", "topic")
        },
        operations=_store_operations(exposition),
        lags=tuple(_lags(exposition)),
    )


class Exposition:
    """The text that one broker returned, in Prometheus' exposition format."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def value(self, name: str) -> float | None:
        """The value of a metric without labels; None if there is no such metric."""
        return next((value for _, value in self.samples(name)), None)

    def samples(self, name: str, *labels: str) -> Iterator[tuple[Labels, float]]:
        """The series of a metric: the values of these labels, and the sample."""
        yield from self._read(name, name, labels)

    def buckets(self, name: str, *labels: str) -> Iterator[tuple[Labels, float]]:
        """The buckets of a histogram; the bound (`le`) is the last label."""
        yield from self._read(name, f"{name}_bucket", (*labels, "le"))

    def _read(self, family: str, name: str, labels: Labels) -> Iterator[tuple[Labels, float]]:
        prefix = name + "{"
        separators = [f"{',' if index else ''}{label}=" for index, label in enumerate(labels)]
        for line in self._lines(family):
            if not labels and line.startswith(name + " "):
                label_text = ""
                number = line[len(name) + 1 :]
            elif line.startswith(prefix):
                label_text, _, number = line[len(prefix) :].rpartition("} ")
            else:
                continue
            values = _label_values(label_text, labels, separators)
            if values is not None:
                try:
                    yield values, float(number)
                except ValueError:
                    continue

    def _lines(self, family: str) -> list[str]:
        """The lines between the header of a family and the next header."""
        header = f"# TYPE {family} "
        begin = self._text.find(header)
        if begin < 0:
            return []
        end = self._text.find("\n# ", begin)
        # Not `splitlines`: group names may contain Unicode line separators.
        return self._text[begin : end if end >= 0 else None].split("\n")[1:]


def _label_values(label_text: str, labels: Labels, separators: list[str]) -> Labels | None:
    """The values of some labels; None if one of them is missing.

    `separators` is the text between the values if exactly these labels occur, in this order.
    """
    if not labels:
        return ()
    if "\\" in label_text:
        pairs = {name: _unescape(value) for name, value in _LABEL.findall(label_text)}
    else:
        # Without escapes, quotes only delimit values. Splitting takes a tenth of the regex's time.
        parts = label_text.split('"')
        if parts[:-1:2] == separators:
            return tuple(parts[1::2])
        pairs = {
            name.strip(",="): value for name, value in zip(parts[::2], parts[1::2], strict=False)
        }
    if any(label not in pairs for label in labels):
        return None
    return tuple(pairs[label] for label in labels)


def _unescape(value: str) -> str:
    return _ESCAPED.sub(lambda match: _UNESCAPED.get(match[1], match[1]), value)


def _by_partition(exposition: Exposition, name: str) -> dict[TopicPartition, int]:
    values: dict[TopicPartition, int] = {}
    for (topic, partition), value in exposition.samples(name, "topic", "partition"):
        topic_partition = (topic, int(partition)) if partition.isdigit() else OTHER
        values[topic_partition] = values.get(topic_partition, 0) + int(value)
    return values


def _store_operations(exposition: Exposition) -> dict[str, StoreOperation]:
    counts: dict[str, dict[str, int]] = {}
    for (name, status), count in exposition.samples(
        "kafscale_s3_operations_total", "operation", "status"
    ):
        counts.setdefault(name, {})[status] = int(count)
    buckets: dict[str, list[tuple[float, int]]] = {}
    for (name, bound), count in exposition.buckets("kafscale_s3_latency_seconds", "operation"):
        buckets.setdefault(name, []).append((float(bound), int(count)))
    return {
        name: StoreOperation(
            succeeded=by_status.get("success", 0),
            failed=by_status.get("error", 0),
            buckets=tuple(buckets.get(name, ())),
        )
        for name, by_status in counts.items()
    }


def _lags(exposition: Exposition) -> Iterable[PartitionLag]:
    for (group, topic, partition), lag in exposition.samples(
        "kafscale_consumer_lag", "group", "topic", "partition"
    ):
        if partition.isdigit():
            yield PartitionLag(group, topic, int(partition), int(lag))


# --- quantiles ------------------------------------------------------------------------------------


def quantile(share: float, buckets: Buckets) -> float | None:
    """The quantile of a histogram, computed as Prometheus does; None if it is empty.

    Values are assumed to be spread evenly within a bucket. Values above the last finite bound count
    as that bound.

    >>> quantile(0.5, ((1.0, 2), (2.0, 4), (inf, 4)))
    1.0
    >>> quantile(0.75, ((1.0, 2), (2.0, 4), (inf, 4)))
    1.5
    """
    if not buckets or buckets[-1][1] <= 0:
        return None
    rank = share * buckets[-1][1]
    below, count_below = 0.0, 0.0
    for bound, count in buckets:
        if count >= rank and count > count_below:
            if bound == inf:
                return below
            return below + (bound - below) * (rank - count_below) / (count - count_below)
        below, count_below = bound, count
    return below
