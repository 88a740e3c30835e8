"""When what goes wrong: the same for the same seed.

Pure. Troubles come alone or in pairs, the two of a pair never about the same thing. All are over
before the next one comes, and at the end.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chaos.troubles import (
    BadLinks,
    BrokerKill,
    BrokerPause,
    BrokerStop,
    CutLinks,
    EtcdKill,
    EtcdPause,
    Together,
    Trouble,
)
from services.cluster import client_link, etcd_link, s3_link
from services.link_fault import Fault

QUIET_S = 2.0
"""At the start, so that there is something to lose."""
CALM_S = (1.0, 5.0)
"""Between troubles, so that work goes on and there is something to disturb."""
LASTS_S_MIN = 1.0
"""Nothing begins so shortly before the end."""
PAIRS_SHARE = 0.4
"""So often a second trouble comes on top of one."""


@dataclass(frozen=True)
class Shape:
    """What there is in a cluster that may be troubled."""

    broker_ids: tuple[int, ...]
    etcd_members: int
    lease_s: float
    """How long others wait for a broker that is silent."""

    def s3_links(self, broker_ids: Sequence[int]) -> tuple[str, ...]:
        return tuple(map(s3_link, broker_ids))

    def etcd_links(self, broker_ids: Sequence[int]) -> tuple[str, ...]:
        members = range(self.etcd_members)
        return tuple(etcd_link(each, member) for each in broker_ids for member in members)

    def client_links(self, broker_ids: Sequence[int]) -> tuple[str, ...]:
        return tuple(map(client_link, broker_ids))


class Step(NamedTuple):
    """A trouble and its time, in seconds since the start."""

    begin_s: float
    end_s: float
    trouble: Trouble

    def __str__(self) -> str:
        return f"{self.begin_s:6.1f} s - {self.end_s:6.1f} s  {self.trouble}"


class Idea(NamedTuple):
    """A trouble, and how long it would like to last."""

    trouble: Trouble
    lasts_s: float


def plan(seed: int, duration_s: float, shape: Shape) -> list[Step]:
    """A schedule for a cluster, in the order of beginnings."""
    chance = random.Random(seed)
    ideas = [*_BROKERS, *_S3, *_CLIENTS, *(_ETCD if shape.etcd_members else ())]
    steps: list[Step] = []
    now_s = QUIET_S
    while now_s < duration_s - LASTS_S_MIN:
        first = _step(now_s, chance.choice(ideas)(chance, shape), duration_s)
        steps.append(first)
        second = chance.choice(ideas)(chance, shape)
        if chance.random() < PAIRS_SHARE and not second.trouble.targets & first.trouble.targets:
            begin_s = chance.uniform(first.begin_s, first.end_s)
            steps.append(_step(begin_s, second, duration_s))
        now_s = max(step.end_s for step in steps[-2:]) + chance.uniform(*CALM_S)
    return steps


def _step(begin_s: float, idea: Idea, duration_s: float) -> Step:
    return Step(begin_s, min(begin_s + idea.lasts_s, duration_s), idea.trouble)


# --- ideas ----------------------------------------------------------------------------------------


def _some(chance: random.Random, shape: Shape) -> tuple[int, ...]:
    """One broker, mostly; sometimes all."""
    return shape.broker_ids if chance.random() < 0.2 else (chance.choice(shape.broker_ids),)


def _kill(chance: random.Random, shape: Shape) -> Idea:
    return Idea(BrokerKill(_some(chance, shape)), chance.choice([0.1, chance.uniform(1, 8)]))


def _stop(chance: random.Random, shape: Shape) -> Idea:
    return Idea(BrokerStop(_some(chance, shape)), chance.uniform(0.1, 4))


def _pause(chance: random.Random, shape: Shape) -> Idea:
    lasts_s = chance.choice([chance.uniform(0.5, 3), shape.lease_s * chance.uniform(1.1, 2.5)])
    return Idea(BrokerPause(_some(chance, shape)), lasts_s)


def _s3(kind: str, make: Callable[[random.Random], Fault]) -> Callable[..., Idea]:
    def idea(chance: random.Random, shape: Shape) -> Idea:
        links = shape.s3_links(_some(chance, shape))
        return Idea(BadLinks(kind, links, make(chance)), chance.uniform(2, 9))

    return idea


def _etcd(kind: str, make: Callable[[random.Random], Fault]) -> Callable[..., Idea]:
    def idea(chance: random.Random, shape: Shape) -> Idea:
        links = shape.etcd_links(_some(chance, shape))
        lasts_s = chance.uniform(0.3, 1.5) * shape.lease_s
        return Idea(BadLinks(kind, links, make(chance)), lasts_s)

    return idea


def _etcd_members(chance: random.Random, shape: Shape) -> tuple[int, ...]:
    """One member, which the others can do without, or all."""
    everybody = tuple(range(shape.etcd_members))
    return everybody if chance.random() < 0.3 else (chance.choice(everybody),)


def _etcd_kill(chance: random.Random, shape: Shape) -> Idea:
    return Idea(EtcdKill(_etcd_members(chance, shape)), chance.uniform(1, 8))


def _etcd_pause(chance: random.Random, shape: Shape) -> Idea:
    return Idea(EtcdPause(_etcd_members(chance, shape)), chance.uniform(1, 8))


def _isolated(chance: random.Random, shape: Shape) -> Idea:
    """One broker is cut off from etcd for so long that others take over, and does not hear of it.

    Its clients still come, and maybe what it writes comes late, when nobody expects it any more.
    """
    one = (chance.choice(shape.broker_ids),)
    lasts_s = shape.lease_s * chance.uniform(1.3, 3)
    etcd = BadLinks("etcd held", shape.etcd_links(one), Fault(holds="everything"))
    if chance.random() < 0.5:
        return Idea(Together("isolation", (etcd,)), lasts_s)
    late = Fault(holds="requests", only="^PUT ")
    s3 = BadLinks("s3 writes held", shape.s3_links(one), late)
    return Idea(Together("isolation, late writes", (s3, etcd)), lasts_s)


def _late_pause(chance: random.Random, shape: Shape) -> Idea:
    """One broker stands still past its lease, and what it wrote last comes after the others'."""
    one = (chance.choice(shape.broker_ids),)
    s3 = BadLinks("s3 writes held", shape.s3_links(one), Fault(holds="requests", only="^PUT "))
    lasts_s = shape.lease_s * chance.uniform(1.3, 2.5)
    return Idea(Together("pause, late writes", (s3, BrokerPause(one))), lasts_s)


def _clients_cut(chance: random.Random, shape: Shape) -> Idea:
    links = shape.client_links(_some(chance, shape))
    return Idea(CutLinks("clients cut off", links), chance.uniform(2, 6))


def _clients_held(chance: random.Random, shape: Shape) -> Idea:
    holds = chance.choice(["requests", "answers", "everything"])
    links = shape.client_links(_some(chance, shape))
    return Idea(BadLinks(f"clients' {holds} held", links, Fault(holds=holds)), chance.uniform(1, 6))


_IdeaMaker = Callable[[random.Random, Shape], Idea]

_BROKERS: Sequence[_IdeaMaker] = (_kill, _kill, _stop, _pause, _pause)
_CLIENTS: Sequence[_IdeaMaker] = (_clients_cut, _clients_held)
_S3: Sequence[_IdeaMaker] = (
    _s3(
        "s3 errors",
        lambda chance: Fault(
            error_share=chance.choice([0.2, 0.5, 1]), error_status=chance.choice([500, 503])
        ),
    ),
    _s3("s3 errors in the WAL", lambda _: Fault(error_share=0.7, only="^PUT .*/_wal/")),
    _s3(
        "s3 slow",
        lambda chance: Fault(
            delay_ms_min=chance.choice([20, 200]), delay_ms_max=chance.choice([500, 3000])
        ),
    ),
    _s3("s3 requests held", lambda _: Fault(holds="requests")),
    _s3("s3 answers held", lambda _: Fault(holds="answers")),
    _s3("s3 answers lost", lambda chance: Fault(lost_share=chance.choice([0.1, 0.5]))),
    _s3("s3 answers cut", lambda _: Fault(cut_share=0.3)),
    _s3("s3 refused", lambda _: Fault(refuses=True)),
)
_ETCD: Sequence[_IdeaMaker] = (
    _isolated,
    _isolated,
    _late_pause,
    _etcd_kill,
    _etcd_kill,
    _etcd_pause,
    _etcd(
        "etcd slow", lambda chance: Fault(delay_ms_min=50, delay_ms_max=chance.choice([300, 1500]))
    ),
    _etcd("etcd held", lambda _: Fault(holds="everything")),
    _etcd("etcd answers held", lambda _: Fault(holds="answers")),
    _etcd("etcd refused", lambda _: Fault(refuses=True)),
)
