"""How the brokers of a cluster do, asked of all of them at once over the control plane.

The laws: a survey always comes, and soon: who does not answer in time is told of as silent. One
survey serves everybody who asks within `FRESH_MS`, so that a thousand topics cost as much as one.
Which brokers there are is what the metadata says; what they own, and how far it goes, what they say
themselves; how many clients they have, the samples that they have sent to the operator.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final
from weakref import WeakKeyDictionary

import msgspec

from kafscale.config.sections.security import ClientTls
from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.messages import BrokerStatusResponse, MetricsSample
from kafscale.control_plane.partition import Partition
from kafscale.errors import KafscaleError
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.observability.logging import get_logger
from kafscale.operator.cluster.metadata import ClusterMetadata

log = get_logger(__name__)

FRESH_MS: Final = 5_000
ANSWER_SECONDS_MAX: Final = 3.0
ASKED_AT_ONCE_MAX: Final = 16
CONNECTIONS: Final = "kafscale_active_connections"
IDLE: Final = "kafscale_idle_seconds"

Ask = Callable[[BrokerInfo], Awaitable[BrokerStatusResponse]]
SamplesOf = Callable[[str], Iterable[MetricsSample]]
"""The samples of a cluster by its id, each of them not old."""


class BrokerReport(msgspec.Struct, frozen=True, kw_only=True):
    """How one broker does."""

    id: int
    has_answered: bool
    is_ready: bool = False
    """Whether it serves clients."""
    is_draining: bool = False
    problems: Mapping[str, str] = {}
    """What stands in its way, and why."""
    version: str = ""
    partition_count: int = 0
    connection_count: int | None = None
    """How many clients are connected; None if nobody has said so."""
    idle_seconds: float | None = None
    """For how long no client was; None if nobody has said so."""


class Survey(msgspec.Struct, frozen=True):
    """How all brokers do."""

    brokers: Mapping[int, BrokerReport]
    log_end_offsets: Mapping[Partition, int]
    """Of the partitions that some broker leads, as that broker says."""

    @property
    def ready(self) -> list[int]:
        return [each.id for each in self.brokers.values() if each.is_ready]

    @property
    def draining(self) -> list[int]:
        return [each.id for each in self.brokers.values() if each.is_draining]

    @property
    def silent(self) -> list[int]:
        """Those that are registered, but do not answer."""
        return [each.id for each in self.brokers.values() if not each.has_answered]

    @property
    def connection_count(self) -> int | None:
        """How many clients are connected to all of them; None if that of one is not known."""
        counts = [each.connection_count for each in self.brokers.values()]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    @property
    def idle_seconds(self) -> float | None:
        """For how long nobody was connected to any; None if that of one is not known, or none is.

        >>> Survey({}, {}).idle_seconds
        """
        told = [each.idle_seconds for each in self.brokers.values()]
        known = [seconds for seconds in told if seconds is not None]
        return min(known) if known and len(known) == len(told) else None


class _Kept:
    """The last survey of a cluster."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.survey: Survey | None = None
        self.taken_ms = 0


class Surveyor:
    """Takes surveys of clusters, and keeps the last one of each for a moment."""

    def __init__(
        self,
        ask: Ask,
        clock: Callable[[], int],
        samples_of: SamplesOf = lambda _cluster_id: (),
        *,
        fresh_ms: int = FRESH_MS,
    ) -> None:
        """`clock` is in milliseconds."""
        self._ask = ask
        self._samples_of = samples_of
        self._clock = clock
        self._fresh_ms = fresh_ms
        self._asked_at_once = asyncio.Semaphore(ASKED_AT_ONCE_MAX)
        self._kept: WeakKeyDictionary[ClusterMetadata, _Kept] = WeakKeyDictionary()

    async def survey(self, metadata: ClusterMetadata) -> Survey:
        """How the brokers of a cluster do, or did a moment ago."""
        kept = self._kept.setdefault(metadata, _Kept())
        async with kept.lock:
            if kept.survey is None or self._clock() - kept.taken_ms >= self._fresh_ms:
                kept.taken_ms = self._clock()
                kept.survey = await self._take(metadata)
            return kept.survey

    async def _take(self, metadata: ClusterMetadata) -> Survey:
        brokers = sorted(metadata.brokers.values(), key=lambda broker: broker.id)
        answers = await asyncio.gather(*map(self._answer, brokers))
        cluster_ids = {answer.cluster_id for answer in answers if answer is not None}
        samples = [each for cluster_id in cluster_ids for each in self._samples_of(cluster_id)]
        numbers = (broker.id for broker in brokers)
        return summary(dict(zip(numbers, answers, strict=True)), samples)

    async def _answer(self, broker: BrokerInfo) -> BrokerStatusResponse | None:
        try:
            async with self._asked_at_once, asyncio.timeout(ANSWER_SECONDS_MAX):
                return await self._ask(broker)
        except (KafscaleError, TimeoutError) as error:
            reason = str(error) or "it took too long"
            log.info("broker does not answer", broker_id=broker.id, reason=reason)
            return None


def over_control_plane(tls: ClientTls | None = None) -> Ask:
    """Asks brokers where they have registered their control plane."""

    async def ask(broker: BrokerInfo) -> BrokerStatusResponse:
        async with ControlClient(control_address(broker), tls) as client:
            return await client.status(with_samples=True)

    return ask


def control_address(broker: BrokerInfo) -> str:
    """Where a broker's control plane is.

    >>> control_address(BrokerInfo(id=0, epoch=1, host="::1", port=9092, control_port=9093))
    '[::1]:9093'
    """
    host = broker.control_host or broker.host
    return f"[{host}]:{broker.control_port}" if ":" in host else f"{host}:{broker.control_port}"


def summary(
    answers: Mapping[int, BrokerStatusResponse | None], samples: Iterable[MetricsSample] = ()
) -> Survey:
    """What the answers of all brokers come to, by their ids; None of one that gave none.

    `samples` are those that the operator has, beside those that brokers have of each other.
    """
    given = [answer for answer in answers.values() if answer is not None]
    told = [*samples, *(sample for answer in given for sample in answer.samples)]
    gauges = _newest_gauges(told)
    return Survey(
        {
            number: _report(number, answer, gauges.get(str(number), {}))
            for number, answer in answers.items()
        },
        {
            Partition(owned.topic, owned.partition): owned.log_end_offset
            for answer in given
            for owned in answer.partitions
            if owned.leader
        },
    )


def _report(
    number: int, answer: BrokerStatusResponse | None, gauges: Mapping[str, float]
) -> BrokerReport:
    if answer is None:
        return BrokerReport(id=number, has_answered=False)
    return BrokerReport(
        id=number,
        has_answered=True,
        is_ready=answer.ready,
        is_draining=answer.draining,
        problems=dict(answer.problems),
        version=answer.version,
        partition_count=len(answer.partitions),
        connection_count=int(gauges[CONNECTIONS]) if CONNECTIONS in gauges else None,
        idle_seconds=gauges.get(IDLE),
    )


def _newest_gauges(samples: Iterable[MetricsSample]) -> dict[str, Mapping[str, float]]:
    """What each broker measured last, as far as somebody has a sample of it."""
    newest: dict[str, MetricsSample] = {}
    for sample in samples:
        before = newest.get(sample.broker_id)
        if before is None or before.timestamp_ms <= sample.timestamp_ms:
            newest[sample.broker_id] = sample
    return {broker_id: sample.gauges for broker_id, sample in newest.items()}
