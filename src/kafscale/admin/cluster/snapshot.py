"""A snapshot of a whole cluster: its brokers, partitions, topics and groups.

    snapshot = await take_snapshot(connections)       # once
    poller = ClusterPoller(connections)               # repeatedly
    snapshot = await poller.poll(with_listing=False)

Invariants:

* All brokers are queried concurrently; one that hangs costs `broker.POLL_SECONDS_MAX` at most.
* Polling raises no errors. A cluster that does not respond yields a snapshot that says why, and the
  next poll tries again.
* Addresses and lists are kept between polls only to find brokers faster and to have something to
  show while they cannot be read.

Topics and groups are listed over Kafka's protocol. That costs more than everything else and counts
as client activity, which keeps an idle cluster from scaling to zero. `ClusterPoller` lists them
only on request, or if brokers serve other topics than before. Everything else comes from the
control plane and from metrics.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec

from kafscale.admin.cluster import broker as cluster_broker
from kafscale.admin.cluster import listing
from kafscale.admin.cluster.broker import BrokerResponse, BrokerStatus, ServedPartition
from kafscale.admin.cluster.listing import GroupSummary, Listing, TopicSummary
from kafscale.admin.connection import ClusterConnections
from kafscale.aio.clock import clock
from kafscale.control_plane.messages import BrokerStatusResponse, BrokerSummary
from kafscale.errors import KafscaleError
from kafscale.net.address import Address

BROKERS_MAX = 1_000
BOOTSTRAP_MAX = 3
"""How many known addresses are tried before the poller continues without topics and groups."""

Responses = dict[Address, BrokerResponse | KafscaleError]


class ClusterSnapshot(msgspec.Struct, frozen=True):
    """A cluster at one time."""

    at_ms: int
    cluster_id: str
    controller: int | None
    brokers: tuple[BrokerStatus, ...]
    """By id; brokers that are registered."""
    topics: dict[str, TopicSummary]
    groups: dict[str, GroupSummary]
    problem: str | None
    """Why no broker responded on the control plane; None if one did."""
    listing_problem: str | None
    """Why topics or groups are missing, incomplete or outdated."""

    def partitions(self) -> Iterable[ServedPartition]:
        """All partitions that a broker owns."""
        for broker in self.brokers:
            yield from broker.partitions


async def take_snapshot(connections: ClusterConnections) -> ClusterSnapshot:
    """Take one snapshot of a cluster, with its topics and groups."""
    return await ClusterPoller(connections).poll(with_listing=True)


class ClusterPoller:
    """Polls one cluster and remembers the addresses of its brokers."""

    def __init__(self, connections: ClusterConnections, now_ms: Callable[[], int] = clock) -> None:
        self._connections = connections
        self._now_ms = now_ms
        self._control_addresses: dict[int, Address] = {}
        self._metrics_addresses: dict[int, Address] = {}
        self._cluster_id = ""
        self._listing: Listing | None = None
        self._listing_problem: str | None = None
        self._served_counts: Counter[str] = Counter()
        """The number of served partitions of each topic at the last poll."""

    async def poll(self, *, with_listing: bool) -> ClusterSnapshot:
        """Take a snapshot; without a new listing, topics and groups are those of the last one."""
        if with_listing:
            responses, _ = await asyncio.gather(self._query_brokers(), self._list())
        else:
            responses = await self._query_brokers()
        brokers, controller = self._build_brokers(responses)
        served_counts = Counter(each.topic for broker in brokers for each in broker.partitions)
        if not with_listing and served_counts != self._served_counts:
            await self._list()
        self._served_counts = served_counts
        last = self._listing
        return ClusterSnapshot(
            at_ms=self._now_ms(),
            cluster_id=self._cluster_id,
            controller=controller,
            brokers=brokers,
            topics=last.topics if last else {},
            groups=last.groups if last else {},
            problem=None if _successful(responses) else _failure_reason(responses),
            listing_problem=self._listing_problem,
        )

    # --- brokers ------------------------------------------------------------------------------

    async def _query_brokers(self) -> Responses:
        """Query the known brokers or else those of the settings, then all brokers they list."""
        responses = await self._query(dict.fromkeys(self._control_addresses.values(), ""))
        if not _successful(responses):
            configured = self._connections.control_addresses
            responses |= await self._query(
                {each: "" for each in configured if each not in responses}
            )
        responded = {each.broker_id for each in _successful(responses)}
        others = {
            cluster_broker.control_address(summary): str(broker_id)
            for broker_id, summary in _summaries(_successful(responses)).items()
            if broker_id not in responded
        }
        return responses | await self._query(
            {
                address: broker_id
                for address, broker_id in others.items()
                if address is not None and address not in responses
            }
        )

    async def _query(self, addresses: Mapping[Address, str]) -> Responses:
        """Query the addresses; with each is the id of the broker expected there, or nothing."""
        chosen = list(addresses.items())[:BROKERS_MAX]
        responses = await asyncio.gather(
            *(
                cluster_broker.query(
                    address,
                    self._connections.control_tls,
                    broker_id=broker_id,
                    metrics_addresses=self._metrics_addresses,
                )
                for address, broker_id in chosen
            )
        )
        return dict(zip((address for address, _ in chosen), responses, strict=True))

    def _build_brokers(self, responses: Responses) -> tuple[tuple[BrokerStatus, ...], int | None]:
        """All brokers and the controller's id; keeps the addresses that worked."""
        successful = _successful(responses)
        if not successful:
            return (), None
        by_id = {each.broker_id: each for each in successful}
        authority = _most_authoritative(successful)
        controller = int(authority.controller_id) if authority.controller_id else None
        summaries = _summaries(successful)
        self._cluster_id = authority.cluster_id
        self._control_addresses = {broker_id: each.address for broker_id, each in by_id.items()}
        self._metrics_addresses = {
            each.broker_id: each.metrics_address
            for each in successful
            if each.metrics_address is not None
        }
        brokers = []
        for broker_id in sorted({*summaries, *by_id})[:BROKERS_MAX]:
            summary = summaries.get(broker_id)
            response = by_id.get(broker_id) or _error_of(summary, responses)
            brokers.append(cluster_broker.build(broker_id, summary, response, controller))
        return tuple(brokers), controller

    # --- topics and groups --------------------------------------------------------------------

    async def _list(self) -> None:
        last = self._listing
        known = (last.source, *last.addresses) if last else ()
        bootstrap = self._connections.bootstrap_addresses
        addresses = list(dict.fromkeys((*known[:BOOTSTRAP_MAX], *bootstrap)))
        try:
            async with self._connections.client() as client:
                self._listing = await listing.list_topics_and_groups(
                    client, addresses[: 2 * BOOTSTRAP_MAX]
                )
            self._listing_problem = "\n".join(self._listing.problems) or None
        except KafscaleError as error:
            self._listing_problem = str(error)


def _successful(responses: Responses) -> list[BrokerResponse]:
    return [each for each in responses.values() if isinstance(each, BrokerResponse)]


def _most_authoritative(responses: list[BrokerResponse]) -> BrokerStatusResponse:
    """The response to trust if brokers differ: the controller's, else one that knows it."""
    return max(
        (each.status for each in responses),
        key=lambda status: (status.is_controller, bool(status.controller_id), len(status.brokers)),
    )


def _summaries(responses: list[BrokerResponse]) -> dict[int, BrokerSummary]:
    if not responses:
        return {}
    return {int(each.broker_id): each for each in _most_authoritative(responses).brokers}


def _error_of(summary: BrokerSummary | None, responses: Responses) -> KafscaleError:
    address = cluster_broker.control_address(summary) if summary else None
    response = responses.get(address) if address else None
    if isinstance(response, KafscaleError):
        return response
    if response is not None:
        return KafscaleError(
            f"its control plane address {address} leads to broker {response.broker_id}: set"
            " broker.controlHost to an address that other machines reach, and control.tls"
        )
    return KafscaleError("the broker has registered no control plane address")


def _failure_reason(responses: Responses) -> str:
    reasons = dict.fromkeys(str(each) for each in responses.values())
    return "\n".join(reasons) or "no control plane address is set (KAFSCALE_CONTROL_SERVERS)"
