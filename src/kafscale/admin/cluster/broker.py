"""The status of one broker: what the cluster knows about it, its own response, and its metrics.

Invariant: a broker that hangs costs `POLL_SECONDS_MAX` and is reported as unreachable.

A broker responds where its metrics are. If they are served on all its addresses, they are read from
the host of its control plane.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

import msgspec

from kafscale.admin.cluster.metrics import BrokerMetrics, Exposition, ScrapeError, parse, scrape
from kafscale.config.sections.security import ClientTls
from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.messages import BrokerStatusResponse, BrokerSummary
from kafscale.errors import KafscaleError
from kafscale.net.address import ANY_ADDRESSES, Address, is_loopback

POLL_SECONDS_MAX: Final = 2.0

READY: Final = "ready"
NOT_READY: Final = "not ready"
DRAINING: Final = "draining"
UNREACHABLE: Final = "unreachable"


class ServedPartition(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A partition, as reported by the broker that owns it."""

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


class BrokerStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A broker: what the cluster knows about it, and what it reports itself."""

    id: int
    address: str | None
    control: str | None
    rack: str | None
    version: str
    epoch: int
    is_controller: bool
    is_draining: bool = msgspec.field(name="draining")
    """True if it is about to leave; a draining broker that stops responding has left."""
    partition_count: int
    shard_count: int
    moving_count: int
    state: str
    problems: dict[str, str]
    store_health: str | None
    uptime_ms: int | None
    partitions: tuple[ServedPartition, ...] = ()
    metrics: BrokerMetrics | None = None
    metrics_problem: str | None = None


class BrokerResponse(msgspec.Struct, frozen=True):
    """What a broker has responded, and at which addresses."""

    broker_id: int
    address: Address
    status: BrokerStatusResponse
    metrics: BrokerMetrics | None
    metrics_problem: str | None
    metrics_address: Address | None


async def query(
    address: Address,
    tls: ClientTls | None,
    *,
    broker_id: str = "",
    metrics_addresses: Mapping[int, Address],
) -> BrokerResponse | KafscaleError:
    """Query the status and the metrics of the broker at an address; return errors.

    `broker_id` is the broker that is expected there, if known. `metrics_addresses` has the
    addresses at which the metrics of brokers were found before.
    """
    status = await _query_status(address, tls, broker_id)
    if isinstance(status, KafscaleError):
        return status
    own_id = int(status.broker_id)
    candidates = _metrics_addresses(status, address)
    if own_id in metrics_addresses:
        candidates.insert(0, metrics_addresses[own_id])
    problem = "its metrics are served to programs on its machine only: set broker.metricsHost"
    for candidate in dict.fromkeys(candidates):
        try:
            metrics = parse(Exposition(await scrape(candidate, POLL_SECONDS_MAX)))
        except ScrapeError as error:
            problem = str(error)
            continue
        registered = (each for each in _registered(status) if each.host == candidate.host)
        own_address = next(registered, address)
        return BrokerResponse(own_id, own_address, status, metrics, None, candidate)
    return BrokerResponse(own_id, address, status, None, problem, None)


def build(
    broker_id: int,
    summary: BrokerSummary | None,
    response: BrokerResponse | KafscaleError,
    controller: int | None,
) -> BrokerStatus:
    """Combine what other brokers know about a broker with its own response."""
    if isinstance(response, KafscaleError):
        return build_status(broker_id, summary, response, controller)
    return msgspec.structs.replace(
        build_status(broker_id, summary, response.status, controller),
        partitions=served_partitions(response.status),
        metrics=response.metrics,
        metrics_problem=response.metrics_problem,
    )


def build_status(
    broker_id: int,
    summary: BrokerSummary | None,
    response: BrokerStatusResponse | KafscaleError,
    controller: int | None,
) -> BrokerStatus:
    """The status of a broker without its partitions and metrics."""
    summary = summary or BrokerSummary(broker_id=str(broker_id))
    status = BrokerStatus(
        id=broker_id,
        address=_format_address(summary.host, summary.port),
        control=_format_address(summary.control_host or summary.host, summary.control_port),
        rack=summary.rack or None,
        version=summary.version,
        epoch=summary.epoch,
        is_controller=broker_id == controller,
        is_draining=summary.draining,
        partition_count=summary.partition_count,
        shard_count=summary.shard_count,
        moving_count=summary.moving_count,
        state=UNREACHABLE,
        problems={},
        store_health=None,
        uptime_ms=None,
    )
    if isinstance(response, KafscaleError):
        return msgspec.structs.replace(status, problems={"control plane": str(response)})
    is_draining = response.draining or summary.draining
    return msgspec.structs.replace(
        status,
        version=response.version,
        epoch=response.epoch,
        is_draining=is_draining,
        state=(DRAINING if is_draining else READY) if response.ready else NOT_READY,
        problems=dict(response.problems),
        store_health=response.store_health or None,
        uptime_ms=response.uptime_ms,
    )


def served_partitions(response: BrokerStatusResponse) -> tuple[ServedPartition, ...]:
    """The partitions of a broker, in the order of its response."""
    return tuple(
        ServedPartition(
            topic=each.topic,
            partition=each.partition,
            broker=int(response.broker_id),
            state=each.state,
            moving_to=int(each.moving_to) if each.moving_to else None,
            leader_epoch=each.leader_epoch,
            start_offset=each.log_start_offset,
            rolled_offset=each.rolled_offset,
            high_watermark=each.high_watermark,
            end_offset=each.log_end_offset,
            size_bytes=each.size_bytes,
        )
        for each in response.partitions
    )


def control_address(summary: BrokerSummary) -> Address | None:
    """The address of the control plane that a broker has registered."""
    host = summary.control_host or summary.host
    return Address(host, summary.control_port) if host and summary.control_port else None


async def _query_status(
    address: Address, tls: ClientTls | None, broker_id: str
) -> BrokerStatusResponse | KafscaleError:
    client = ControlClient(str(address), tls, broker_id)
    try:
        async with asyncio.timeout(POLL_SECONDS_MAX), client:
            return await client.status(with_partitions=True)
    except TimeoutError:
        return KafscaleError(f"no response from {address} within {POLL_SECONDS_MAX:g} s")
    except KafscaleError as error:
        return error


def _metrics_addresses(status: BrokerStatusResponse, address: Address) -> list[Address]:
    """Where the metrics of the broker may be that responded at an address.

    Several brokers may share that address (a load balancer), so it is tried last. A loopback
    address is that of the broker only if it responded on one, too.
    """
    if status.metrics_host in ANY_ADDRESSES:
        hosts = [*(each.host for each in _registered(status)), address.host]
    else:
        hosts = [status.metrics_host]
    return [
        Address(host, status.metrics_port)
        for host in hosts
        if is_loopback(address.host) or not is_loopback(host)
    ]


def _registered(status: BrokerStatusResponse) -> list[Address]:
    """Where the responding broker has registered its control plane."""
    own = (each for each in status.brokers if each.broker_id == status.broker_id)
    return [address for each in own if (address := control_address(each)) is not None]


def _format_address(host: str, port: int) -> str | None:
    return str(Address(host, port)) if host and port else None
