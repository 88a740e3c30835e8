"""How a cluster does, and why: a judgement of a look. Pure.

| state | when |
|---|---|
| `down` | no broker answers, or none of them serves clients |
| `degraded` | something is not as it should be; the reasons say what |
| `healthy` | nothing is |

The law: every state but `healthy` has a reason, a sentence that a person can act upon; and reasons
are few: what many topics have in common is told once.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, Literal

import msgspec

from kafscale.admin.cluster.broker import DRAINING, NOT_READY, UNREACHABLE, BrokerLook
from kafscale.admin.cluster.metadata_health import (
    DEGRADED,
    HEALTHY,
    UNAVAILABLE,
    UNKNOWN,
    MetadataLook,
)
from kafscale.admin.cluster.snapshot import ClusterLook
from kafscale.admin.topics.usage import TopicFigures
from kafscale.text.formatting import counted

Severity = Literal["warning", "critical"]
State = Literal["healthy", "degraded", "down"]

TOPICS_TOLD_MAX: Final = 5
BROKERS_TOLD_MAX: Final = 20

_STORE_ORDER: Final = (HEALTHY, DEGRADED, UNAVAILABLE)


class Reason(msgspec.Struct, frozen=True):
    """One thing that is not as it should be."""

    severity: Severity
    subject: str
    sentence: str


class Health(msgspec.Struct, frozen=True):
    state: State
    reasons: tuple[Reason, ...]


def health(
    look: ClusterLook,
    topics: Mapping[str, TopicFigures],
    metadata: MetadataLook,
    gone: Collection[int] = (),
) -> Health:
    """What is to be said of a cluster; `gone` are brokers that were there lately."""
    if look.problem is not None and not look.brokers:
        sentence = f"No broker answers: {look.problem}"
        return Health("down", (Reason("critical", "cluster", sentence),))
    reasons = [
        *_of_brokers(look, gone),
        *_of_store(look),
        *_of_metadata(metadata),
        *_of_topics(topics.values()),
        *_of_listing(look),
    ]
    reasons.sort(key=lambda each: each.severity != "critical")
    serves = any(each.state not in {UNREACHABLE, NOT_READY} for each in look.brokers)
    if not serves:
        return Health("down", tuple(reasons))
    return Health("degraded" if reasons else "healthy", tuple(reasons))


def store_state(brokers: Iterable[BrokerLook]) -> str | None:
    """The worst that a broker sees of the object store; None where nobody says."""
    states = {each.store_health for each in brokers}
    return next((state for state in reversed(_STORE_ORDER) if state in states), None)


def _of_brokers(look: ClusterLook, gone: Collection[int]) -> Iterator[Reason]:
    if look.controller is None:
        yield Reason("critical", "cluster", "No broker is controller: nothing is assigned anew.")
    for broker_id in sorted(gone)[:BROKERS_TOLD_MAX]:
        yield Reason(
            "critical",
            f"broker {broker_id}",
            "It is gone, and was not drained before: it was killed, or has lost the network."
            " Others take over what it served.",
        )
    troubled = [reason for each in look.brokers if (reason := _of_broker(each))]
    yield from troubled[:BROKERS_TOLD_MAX]


def _of_broker(broker: BrokerLook) -> Reason | None:
    subject = f"broker {broker.id}"
    if broker.state == UNREACHABLE:
        return Reason("critical", subject, f"It does not answer. {_told(broker)}")
    if broker.state == NOT_READY:
        return Reason("critical", subject, f"It does not serve clients. {_told(broker)}")
    if broker.state == DRAINING:
        return Reason("warning", subject, "It is being drained: what it serves moves to others.")
    if broker.figures is None and broker.figures_problem:
        return Reason("warning", subject, f"Its metrics are missing: {broker.figures_problem}")
    return None


def _of_store(look: ClusterLook) -> Iterator[Reason]:
    state = store_state(look.brokers)
    if state == UNAVAILABLE:
        yield Reason(
            "critical",
            "S3",
            "The object store does not answer: nothing is acknowledged until it does.",
        )
    elif state == DEGRADED:
        yield Reason("warning", "S3", "The object store is slow, or fails some requests.")


def _of_metadata(metadata: MetadataLook) -> Iterator[Reason]:
    if metadata.state in {HEALTHY, UNKNOWN}:
        return
    severity: Severity = "critical" if metadata.state == UNAVAILABLE else "warning"
    ready = f"{metadata.ready_count} of {counted(metadata.member_count, 'member')} ready"
    sentence = metadata.problem or "Changes do not arrive."
    yield Reason(severity, metadata.kind, f"{ready}. {sentence}")


def _of_topics(topics: Iterable[TopicFigures]) -> Iterator[Reason]:
    leaderless = [each for each in topics if each.leaderless_count]
    for each in leaderless[:TOPICS_TOLD_MAX]:
        yield Reason(
            "critical",
            f"topic {each.name}",
            f"{each.leaderless_count} of {counted(each.partition_count, 'partition')}"
            " cannot be read or written: no broker serves them at the moment.",
        )
    if more := leaderless[TOPICS_TOLD_MAX:]:
        yield Reason(
            "critical",
            "topics",
            f"The same holds for partitions of {counted(len(more), 'further topic')}.",
        )


def _of_listing(look: ClusterLook) -> Iterator[Reason]:
    if look.listing_problem is not None:
        yield Reason(
            "warning", "Kafka", f"Topics or groups cannot be listed: {look.listing_problem}"
        )


def _told(broker: BrokerLook) -> str:
    return " ".join(f"{name}: {why}." for name, why in sorted(broker.problems.items()))
