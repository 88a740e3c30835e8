"""Plans which faults happen when: the same schedule for the same seed.

Pure. Faults come alone or in pairs; the two faults of a pair never have the same target. All end
before the next one begins, and at the end of the schedule. Outages come first: they are long, and
affect all brokers.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from chaos.cluster_faults import (
    BrokerKill,
    BrokerPause,
    BrokerStop,
    ClusterFault,
    CombinedFault,
    CutLinks,
    EtcdKill,
    EtcdPause,
    FaultyLinks,
    S3Kill,
    S3Pause,
)
from services.cluster import client_link, etcd_link, s3_link
from services.link_fault import Fault

WARM_UP_S = 2.0
"""Without faults at the start, so that there are records to lose."""
PAUSE_BETWEEN_S = (1.0, 5.0)
"""Between faults, so that clients make progress."""
LASTS_S_MIN = 1.0
"""The shortest time from the beginning of a fault to the end of the schedule."""
LATE_S_MAX = 120.0
"""How late a request may reach a server at most."""
WRITES = "^(PUT|POST|DELETE) "
PAIR_SHARE = 0.4
"""The share of faults that get a second, concurrent fault."""


@dataclass(frozen=True)
class ClusterShape:
    """The parts of a cluster that faults can target."""

    broker_ids: tuple[int, ...]
    etcd_members: int
    lease_s: float
    """The time after which the others take over from a silent broker."""
    late_s_max: float = LATE_S_MAX

    def s3_links(self, broker_ids: Sequence[int]) -> tuple[str, ...]:
        return tuple(map(s3_link, broker_ids))

    def etcd_links(self, broker_ids: Sequence[int]) -> tuple[str, ...]:
        members = range(self.etcd_members)
        return tuple(etcd_link(each, member) for each in broker_ids for member in members)

    def client_links(self, broker_ids: Sequence[int]) -> tuple[str, ...]:
        return tuple(map(client_link, broker_ids))


class Step(NamedTuple):
    """A fault and its time, in seconds since the start."""

    begin_s: float
    end_s: float
    fault: ClusterFault

    def __str__(self) -> str:
        return f"{self.begin_s:6.1f} s - {self.end_s:6.1f} s  {self.fault}"


class PlannedFault(NamedTuple):
    """A fault, and how long it should last."""

    fault: ClusterFault
    lasts_s: float


class Outage(NamedTuple):
    """A service that no broker reaches for a long time."""

    service: Literal["etcd", "s3"]
    lasts_s: float


def plan(
    seed: int, duration_s: float, shape: ClusterShape, outages: Sequence[Outage] = ()
) -> list[Step]:
    """A schedule for a cluster, ordered by start, which begins with these outages."""
    rng = random.Random(seed)
    fault_makers = [*_BROKERS, *_S3, *_CLIENTS, *(_ETCD if shape.etcd_members else ())]
    coming = [_outage(rng, shape, each) for each in outages]
    steps: list[Step] = []
    now_s = WARM_UP_S
    while now_s < duration_s - LASTS_S_MIN:
        fault = coming.pop(0) if coming else rng.choice(fault_makers)(rng, shape)
        first = _step(now_s, fault, duration_s)
        steps.append(first)
        second = rng.choice(fault_makers)(rng, shape)
        if rng.random() < PAIR_SHARE and not second.fault.targets & first.fault.targets:
            begin_s = rng.uniform(first.begin_s, first.end_s)
            steps.append(_step(begin_s, second, duration_s))
        now_s = max(step.end_s for step in steps[-2:]) + rng.uniform(*PAUSE_BETWEEN_S)
    return steps


def _step(begin_s: float, make_fault: PlannedFault, duration_s: float) -> Step:
    return Step(begin_s, min(begin_s + make_fault.lasts_s, duration_s), make_fault.fault)


# --- fault makers ---------------------------------------------------------------------------------


def _some(rng: random.Random, shape: ClusterShape) -> tuple[int, ...]:
    """Usually one broker, sometimes all."""
    return shape.broker_ids if rng.random() < 0.2 else (rng.choice(shape.broker_ids),)


def _kill(rng: random.Random, shape: ClusterShape) -> PlannedFault:
    return PlannedFault(BrokerKill(_some(rng, shape)), rng.choice([0.1, rng.uniform(1, 8)]))


def _stop(rng: random.Random, shape: ClusterShape) -> PlannedFault:
    return PlannedFault(BrokerStop(_some(rng, shape)), rng.uniform(0.1, 4))


def _pause(rng: random.Random, shape: ClusterShape) -> PlannedFault:
    lasts_s = rng.choice([rng.uniform(0.5, 3), shape.lease_s * rng.uniform(1.1, 2.5)])
    return PlannedFault(BrokerPause(_some(rng, shape)), lasts_s)


def _s3(kind: str, make: Callable[[random.Random], Fault]) -> Callable[..., PlannedFault]:
    def make_fault(rng: random.Random, shape: ClusterShape) -> PlannedFault:
        links = shape.s3_links(_some(rng, shape))
        return PlannedFault(FaultyLinks(kind, links, make(rng)), rng.uniform(2, 9))

    return make_fault


def _etcd(kind: str, make: Callable[[random.Random], Fault]) -> Callable[..., PlannedFault]:
    def make_fault(rng: random.Random, shape: ClusterShape) -> PlannedFault:
        links = shape.etcd_links(_some(rng, shape))
        lasts_s = rng.uniform(0.3, 1.5) * shape.lease_s
        return PlannedFault(FaultyLinks(kind, links, make(rng)), lasts_s)

    return make_fault


def _etcd_members(rng: random.Random, shape: ClusterShape) -> tuple[int, ...]:
    """One member, so that there is still a quorum, or all."""
    all_members = tuple(range(shape.etcd_members))
    return all_members if rng.random() < 0.3 else (rng.choice(all_members),)


def _etcd_kill(rng: random.Random, shape: ClusterShape) -> PlannedFault:
    return PlannedFault(EtcdKill(_etcd_members(rng, shape)), rng.uniform(1, 8))


def _etcd_pause(rng: random.Random, shape: ClusterShape) -> PlannedFault:
    return PlannedFault(EtcdPause(_etcd_members(rng, shape)), rng.uniform(1, 8))


def _outage(rng: random.Random, shape: ClusterShape, outage: Outage) -> PlannedFault:
    faults: list[ClusterFault]
    if outage.service == "s3":
        faults = [S3Kill(), S3Pause()]
    else:
        members = tuple(range(shape.etcd_members))
        faults = [EtcdKill(members), EtcdPause(members)]
    fault = CombinedFault(f"{outage.service} outage", (rng.choice(faults),))
    return PlannedFault(fault, outage.lasts_s)


def _s3_server(rng: random.Random, _shape: ClusterShape) -> PlannedFault:
    return PlannedFault(rng.choice([S3Kill(), S3Pause()]), rng.uniform(1, 8))


def _late(rng: random.Random, shape: ClusterShape, only: str = "") -> Fault:
    late_ms_max = rng.choice([min(5.0, shape.late_s_max), shape.late_s_max]) * 1000
    return Fault(
        late_share=rng.choice([0.1, 0.5]), late_ms_min=500, late_ms_max=int(late_ms_max), only=only
    )


def _s3_late(rng: random.Random, shape: ClusterShape) -> PlannedFault:
    """Writes and deletions fail, and are executed later."""
    links = shape.s3_links(_some(rng, shape))
    fault = _late(rng, shape, only=rng.choice([WRITES, WRITES, "^(POST|DELETE) "]))
    return PlannedFault(FaultyLinks("s3 late", links, fault), rng.uniform(2, 9))


def _etcd_late(rng: random.Random, shape: ClusterShape) -> PlannedFault:
    """Requests fail, and are executed later."""
    links = shape.etcd_links(_some(rng, shape))
    lasts_s = rng.uniform(0.3, 1.5) * shape.lease_s
    return PlannedFault(FaultyLinks("etcd late", links, _late(rng, shape)), lasts_s)


def _isolated(rng: random.Random, shape: ClusterShape) -> PlannedFault:
    """One broker is cut off from etcd until others take over, without noticing.

    Its clients still reach it, and its writes to S3 may arrive after the takeover.
    """
    one_broker = (rng.choice(shape.broker_ids),)
    lasts_s = shape.lease_s * rng.uniform(1.3, 3)
    etcd = FaultyLinks("etcd held", shape.etcd_links(one_broker), Fault(holds="everything"))
    if rng.random() < 0.5:
        return PlannedFault(CombinedFault("isolation", (etcd,)), lasts_s)
    late = Fault(holds="requests", only="^PUT ")
    s3 = FaultyLinks("s3 writes held", shape.s3_links(one_broker), late)
    return PlannedFault(CombinedFault("isolation, late writes", (s3, etcd)), lasts_s)


def _late_pause(rng: random.Random, shape: ClusterShape) -> PlannedFault:
    """One broker is paused beyond its lease; its last writes arrive after those of the others."""
    one_broker = (rng.choice(shape.broker_ids),)
    s3 = FaultyLinks(
        "s3 writes held", shape.s3_links(one_broker), Fault(holds="requests", only="^PUT ")
    )
    lasts_s = shape.lease_s * rng.uniform(1.3, 2.5)
    return PlannedFault(CombinedFault("pause, late writes", (s3, BrokerPause(one_broker))), lasts_s)


def _clients_cut(rng: random.Random, shape: ClusterShape) -> PlannedFault:
    links = shape.client_links(_some(rng, shape))
    return PlannedFault(CutLinks("clients cut off", links), rng.uniform(2, 6))


def _clients_held(rng: random.Random, shape: ClusterShape) -> PlannedFault:
    holds = rng.choice(["requests", "responses", "everything"])
    links = shape.client_links(_some(rng, shape))
    return PlannedFault(
        FaultyLinks(f"clients' {holds} held", links, Fault(holds=holds)), rng.uniform(1, 6)
    )


_FaultMaker = Callable[[random.Random, ClusterShape], PlannedFault]

_BROKERS: Sequence[_FaultMaker] = (_kill, _kill, _stop, _pause, _pause)
_CLIENTS: Sequence[_FaultMaker] = (_clients_cut, _clients_held)
_S3: Sequence[_FaultMaker] = (
    _s3(
        "s3 errors",
        lambda rng: Fault(
            error_share=rng.choice([0.2, 0.5, 1]), error_status=rng.choice([500, 503])
        ),
    ),
    _s3("s3 errors in the WAL", lambda _: Fault(error_share=0.7, only="^PUT .*/_wal/")),
    _s3(
        "s3 slow",
        lambda rng: Fault(delay_ms_min=rng.choice([20, 200]), delay_ms_max=rng.choice([500, 3000])),
    ),
    _s3("s3 requests held", lambda _: Fault(holds="requests")),
    _s3("s3 responses held", lambda _: Fault(holds="responses")),
    _s3("s3 answers lost", lambda rng: Fault(lost_share=rng.choice([0.1, 0.5]))),
    _s3("s3 answers cut", lambda _: Fault(cut_share=0.3)),
    _s3("s3 refused", lambda _: Fault(refuses=True)),
    _s3_server,
    _s3_late,
    _s3_late,
    _s3_late,
)
_ETCD: Sequence[_FaultMaker] = (
    _isolated,
    _isolated,
    _late_pause,
    _etcd_kill,
    _etcd_kill,
    _etcd_pause,
    _etcd("etcd slow", lambda rng: Fault(delay_ms_min=50, delay_ms_max=rng.choice([300, 1500]))),
    _etcd("etcd held", lambda _: Fault(holds="everything")),
    _etcd("etcd responses held", lambda _: Fault(holds="responses")),
    _etcd("etcd refused", lambda _: Fault(refuses=True)),
    _etcd_late,
    _etcd_late,
)
