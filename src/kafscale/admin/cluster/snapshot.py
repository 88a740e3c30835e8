"""A look at a whole cluster: its brokers, its partitions, its topics and groups, as plain data.

    look = await cluster_look(reach)          # once
    lookout = Lookout(reach)                  # again and again
    look = await lookout.look()

The laws: all brokers are asked at once, and one that hangs costs `broker_look.LOOK_SECONDS_MAX` and
no more. A cluster that does not answer at all is a look as well, with the reason in it: nothing is
raised, and the next look finds it again. What was found on the way (where brokers are, which topics
there are) is remembered only to be found faster, and to be told while it cannot be asked for.

Topics and groups are asked for over Kafka's protocol, which costs more than all the rest, and keeps
a cluster awake that nobody uses: `Lookout` asks for them when it is told to, or when brokers serve
other topics than before. All else comes from the control plane and from metrics.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from kafscale.admin.cluster import broker as cluster_broker
from kafscale.admin.cluster import listing
from kafscale.admin.cluster.broker import Answer, BrokerLook, PartitionLook
from kafscale.admin.cluster.listing import GroupLook, ListedTopic, Listing
from kafscale.admin.connection import Reach
from kafscale.control_plane.messages import BrokerStatusResponse, BrokerSummary
from kafscale.errors import KafscaleError
from kafscale.net.host_port import Address
from kafscale.text.formatting import clock

BROKERS_MAX = 1_000
BOOTSTRAP_MAX = 3
"""How many addresses are tried before a look goes on without topics and groups."""


class ClusterLook(msgspec.Struct, frozen=True):
    """A cluster at one moment."""

    at_ms: int
    cluster_id: str
    controller: int | None
    brokers: tuple[BrokerLook, ...]
    """By their ids; those that are alive, or were lately."""
    topics: dict[str, ListedTopic]
    groups: dict[str, GroupLook]
    problem: str | None
    """Why the control plane of no broker answers, if that is so."""
    listing_problem: str | None
    """Why topics or groups are not known, or not all of them, or not as they are now."""

    def partitions(self) -> Iterable[PartitionLook]:
        """Every partition that some broker owns."""
        for broker in self.brokers:
            yield from broker.partitions


async def cluster_look(reach: Reach) -> ClusterLook:
    """A cluster as it is now."""
    return await Lookout(reach).look(with_listing=True)


class Lookout:
    """Looks at one cluster, and remembers where it is found."""

    def __init__(self, reach: Reach, now_ms: Callable[[], int] = clock) -> None:
        self._reach = reach
        self._now_ms = now_ms
        self._metrics_port = reach.config.broker.metrics_port
        self._ways: dict[int, Address] = {}
        self._measured_at: dict[int, Address] = {}
        self._cluster_id = ""
        self._listing: Listing | None = None
        self._listing_problem: str | None = None
        self._served: Counter[str] = Counter()
        """How many partitions of each topic were served when brokers were asked last."""

    async def look(self, *, with_listing: bool) -> ClusterLook:
        """The cluster now; topics and groups as they were last, unless they are to be listed."""
        if with_listing:
            answers, _ = await asyncio.gather(self._ask_brokers(), self._list())
        else:
            answers = await self._ask_brokers()
        brokers, controller = self._brokers(answers)
        served = Counter(each.topic for broker in brokers for each in broker.partitions)
        if not with_listing and served != self._served:
            await self._list()
        self._served = served
        listed = self._listing
        return ClusterLook(
            at_ms=self._now_ms(),
            cluster_id=self._cluster_id,
            controller=controller,
            brokers=brokers,
            topics=listed.topics if listed else {},
            groups=listed.groups if listed else {},
            problem=None if _answered(answers) else _why(answers),
            listing_problem=self._listing_problem,
        )

    # --- brokers ------------------------------------------------------------------------------

    async def _ask_brokers(self) -> dict[Address, Answer | KafscaleError]:
        """What brokers answer: those that are known, or else those that the settings name."""
        answers = await self._ask(self._ways.values())
        if not _answered(answers):
            answers |= await self._ask(each for each in self._reach.control if each not in answers)
        answered = {each.broker_id for each in _answered(answers)}
        others = (
            cluster_broker.control_address(known)
            for broker_id, known in _summaries(_answered(answers)).items()
            if broker_id not in answered
        )
        return answers | await self._ask(
            each for each in others if each is not None and each not in answers
        )

    async def _ask(self, addresses: Iterable[Address]) -> dict[Address, Answer | KafscaleError]:
        chosen = list(dict.fromkeys(addresses))[:BROKERS_MAX]
        answers = await asyncio.gather(
            *(
                cluster_broker.ask(
                    each,
                    self._reach.control_tls,
                    metrics_port=self._metrics_port,
                    measured_at=self._measured_at,
                )
                for each in chosen
            )
        )
        return dict(zip(chosen, answers, strict=True))

    def _brokers(
        self, answers: dict[Address, Answer | KafscaleError]
    ) -> tuple[tuple[BrokerLook, ...], int | None]:
        """All brokers of what was answered, and who is controller; ways to them are remembered."""
        answered = _answered(answers)
        if not answered:
            return (), None
        by_id = {each.broker_id: each for each in answered}
        best = _best(answered)
        controller = int(best.controller_id) if best.controller_id else None
        known = _summaries(answered)
        self._cluster_id = best.cluster_id
        self._ways = {broker_id: each.address for broker_id, each in by_id.items()}
        self._measured_at = {
            each.broker_id: each.measured_at for each in answered if each.measured_at is not None
        }
        found = []
        for broker_id in sorted({*known, *by_id})[:BROKERS_MAX]:
            summary = known.get(broker_id)
            answer = by_id.get(broker_id) or _refusal(summary, answers)
            found.append(cluster_broker.told(broker_id, summary, answer, controller))
        return tuple(found), controller

    # --- topics and groups --------------------------------------------------------------------

    async def _list(self) -> None:
        before = self._listing
        known = (before.asked, *before.addresses) if before else ()
        addresses = list(dict.fromkeys((*known[:BOOTSTRAP_MAX], *self._reach.bootstrap)))
        try:
            async with self._reach.client() as client:
                self._listing = await listing.list_everything(
                    client, addresses[: 2 * BOOTSTRAP_MAX]
                )
            self._listing_problem = "\n".join(self._listing.problems) or None
        except KafscaleError as error:
            self._listing_problem = str(error)


def _answered(answers: dict[Address, Answer | KafscaleError]) -> list[Answer]:
    return [each for each in answers.values() if isinstance(each, Answer)]


def _best(answered: list[Answer]) -> BrokerStatusResponse:
    """The one to believe where brokers differ: the controller, or else any that knows of one."""
    return max(
        (each.status for each in answered),
        key=lambda status: (status.is_controller, bool(status.controller_id), len(status.brokers)),
    )


def _summaries(answered: list[Answer]) -> dict[int, BrokerSummary]:
    if not answered:
        return {}
    return {int(each.broker_id): each for each in _best(answered).brokers}


def _refusal(
    summary: BrokerSummary | None, answers: dict[Address, Answer | KafscaleError]
) -> KafscaleError:
    address = cluster_broker.control_address(summary) if summary else None
    found = answers.get(address) if address else None
    if isinstance(found, KafscaleError):
        return found
    return KafscaleError("it has not said where its control plane is")


def _why(answers: dict[Address, Answer | KafscaleError]) -> str:
    reasons = dict.fromkeys(str(each) for each in answers.values())
    return "\n".join(reasons) or "no broker is named to be asked (KAFSCALE_CONTROL_SERVERS)"
