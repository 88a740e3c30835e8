"""One broker at one moment: how it says it does, what it serves, and what it measures.

The law: a broker that hangs costs `LOOK_SECONDS_MAX`, and is told of as one that does not answer.

Metrics are served where the control plane is. Where that is encrypted, it has a port of its own;
metrics are then looked for on the same host at the port that the settings name for all brokers.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

import msgspec

from kafscale.admin.cluster.exposition_reading import Exposition
from kafscale.admin.cluster.figures import Figures, figures
from kafscale.admin.cluster.metrics import ScrapeError, scrape
from kafscale.config.sections.security import ClientTls
from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.messages import BrokerStatusResponse, BrokerSummary
from kafscale.errors import KafscaleError
from kafscale.net.host_port import Address

LOOK_SECONDS_MAX: Final = 2.0

READY: Final = "ready"
NOT_READY: Final = "not ready"
DRAINING: Final = "draining"
UNREACHABLE: Final = "unreachable"


class PartitionLook(msgspec.Struct, frozen=True, gc=False):
    """A partition, as the broker tells that serves it."""

    topic: str
    partition: int
    broker: int
    state: str
    moving_to: int | None
    leader_epoch: int
    start_offset: int
    rolled_offset: int
    high_watermark: int
    end_offset: int
    size_bytes: int
    """Of its segments."""

    @property
    def is_served(self) -> bool:
        return self.state != "opening"


class BrokerLook(msgspec.Struct, frozen=True):
    """A broker: what the cluster knows of it, and what it says itself."""

    id: int
    address: str | None
    control: str | None
    rack: str | None
    version: str
    epoch: int
    is_controller: bool
    state: str
    is_draining: bool
    """Whether it is about to leave; one that is, and does not answer any more, has left."""
    problems: dict[str, str]
    store_health: str | None
    uptime_ms: int | None
    partition_count: int
    shard_count: int
    moving_count: int
    partitions: tuple[PartitionLook, ...] = ()
    figures: Figures | None = None
    figures_problem: str | None = None


class Answer(msgspec.Struct, frozen=True):
    """What a broker has answered, and at which addresses."""

    broker_id: int
    address: Address
    status: BrokerStatusResponse
    figures: Figures | None
    figures_problem: str | None
    measured_at: Address | None


async def ask(
    address: Address,
    tls: ClientTls | None,
    *,
    metrics_port: int,
    measured_at: Mapping[int, Address],
) -> Answer | KafscaleError:
    """How the broker at an address does, or why it does not say.

    `metrics_port` is where metrics are if the control plane is encrypted; `measured_at`, where they
    were found before.
    """
    status = await _status(address, tls)
    if isinstance(status, KafscaleError):
        return status
    broker_id = int(status.broker_id)
    # Behind one address there may be several brokers, so that it is the last to be tried.
    places = list(dict.fromkeys((*_registered(status), address)))
    if tls is not None:
        places = [Address(each.host, metrics_port) for each in places]
    before = [measured_at[broker_id]] if broker_id in measured_at else []
    problem = None
    for place in dict.fromkeys((*before, *places)):
        try:
            measured = figures(Exposition(await scrape(place, LOOK_SECONDS_MAX)))
        except ScrapeError as error:
            problem = str(error)
            continue
        way = place if tls is None else address
        return Answer(broker_id, way, status, measured, None, place)
    # Of a port that was guessed, silence is no trouble.
    return Answer(broker_id, address, status, None, problem if tls is None else None, None)


def told(
    broker_id: int,
    known: BrokerSummary | None,
    answer: Answer | KafscaleError,
    controller: int | None,
) -> BrokerLook:
    """One broker, of what others know of it and what it has answered."""
    known = known or BrokerSummary(broker_id=str(broker_id))
    seen = BrokerLook(
        id=broker_id,
        address=_address(known.host, known.port),
        control=_address(known.control_host or known.host, known.control_port),
        rack=known.rack or None,
        version=known.version,
        epoch=known.epoch,
        is_controller=broker_id == controller,
        state=UNREACHABLE,
        is_draining=known.draining,
        problems={},
        store_health=None,
        uptime_ms=None,
        partition_count=known.partition_count,
        shard_count=known.shard_count,
        moving_count=known.moving_count,
    )
    if isinstance(answer, KafscaleError):
        return msgspec.structs.replace(seen, problems={"control plane": str(answer)})
    status = answer.status
    is_draining = status.draining or known.draining
    return msgspec.structs.replace(
        seen,
        version=status.version,
        epoch=status.epoch,
        state=(DRAINING if is_draining else READY) if status.ready else NOT_READY,
        is_draining=is_draining,
        problems=dict(status.problems),
        store_health=status.store_health or None,
        uptime_ms=status.uptime_ms,
        partitions=_partitions(broker_id, status),
        figures=answer.figures,
        figures_problem=answer.figures_problem,
    )


def control_address(known: BrokerSummary) -> Address | None:
    """Where a broker says that its control plane is."""
    host = known.control_host or known.host
    return Address(host, known.control_port) if host and known.control_port else None


async def _status(address: Address, tls: ClientTls | None) -> BrokerStatusResponse | KafscaleError:
    try:
        async with asyncio.timeout(LOOK_SECONDS_MAX), ControlClient(str(address), tls) as client:
            return await client.status(with_partitions=True)
    except TimeoutError:
        return KafscaleError(f"it does not answer within {LOOK_SECONDS_MAX:g} s at {address}")
    except KafscaleError as error:
        return error


def _registered(status: BrokerStatusResponse) -> list[Address]:
    """Where the broker that has answered says that its control plane is."""
    mine = (each for each in status.brokers if each.broker_id == status.broker_id)
    return [address for each in mine if (address := control_address(each)) is not None]


def _partitions(broker_id: int, status: BrokerStatusResponse) -> tuple[PartitionLook, ...]:
    return tuple(
        PartitionLook(
            topic=each.topic,
            partition=each.partition,
            broker=broker_id,
            state=each.state,
            moving_to=int(each.moving_to) if each.moving_to else None,
            leader_epoch=each.leader_epoch,
            start_offset=each.log_start_offset,
            rolled_offset=each.rolled_offset,
            high_watermark=each.high_watermark,
            end_offset=each.log_end_offset,
            size_bytes=each.size_bytes,
        )
        for each in status.partitions
    )


def _address(host: str, port: int) -> str | None:
    return str(Address(host, port)) if host and port else None
