"""Lifecycle rules: a bucket that lets go of old segments, should no broker be left to do so.

The laws:

* A rule is a safety net under the broker's retention, and never ahead of it. Days are rounded up,
  and a margin is added: S3 counts from when a segment was made, the broker from the timestamps in
  it, which may lie ahead. A topic that is kept for ever has no rule.
* A rule concerns the objects of one topic. None is for the bucket, and none expires the write-ahead
  log, which alone may hold what was acknowledged. Uploads that were broken off are another matter:
  they are no objects yet.
* Rules of others stay as they are, in their order. Ours are told by their names, which carry the
  namespace: clusters that share a bucket leave each other's alone.
* S3 takes 1000 rules. If there are more topics, those that keep the most have one.

Pure: what is asked of S3 is left to `s3_control`.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

RULES_MAX: Final = 1000
MARGIN_DAYS: Final = 7
FOREVER: Final = -1

_ID_LENGTH_MAX: Final = 255
_DAY_MS: Final = 24 * 60 * 60 * 1000
_DAYS_MAX: Final = 36_500
"""A century. S3 would take more, and nobody would ever see it."""
_ABORT_DAYS: Final = 1
_NONCURRENT_DAYS: Final = 1
_UPLOADS: Final = "_uploads"

Rule = Mapping[str, Any]
"""A rule as S3's API has it."""


class TopicRetention(msgspec.Struct, frozen=True):
    """How long a topic keeps its records, and how much that is."""

    topic: str
    retention_ms: int
    size_bytes: int = 0


class Plan(msgspec.Struct, frozen=True):
    """The rules that a bucket should have, and what is worth telling about them."""

    rules: Sequence[Rule]
    left_out: Sequence[str]
    """The topics for which there was no room."""
    threats: Sequence[str]
    """The names of rules of others that expire objects of ours, whatever their topics say."""


def plan(namespace: str, topics: Iterable[TopicRetention], found: Sequence[Rule]) -> Plan:
    """Bring the rules that a bucket has up to date."""
    foreign = [rule for rule in found if not is_ours(namespace, rule)]
    wanted = sorted(
        (topic for topic in topics if days(topic.retention_ms) is not None),
        key=lambda topic: (-topic.size_bytes, topic.topic),
    )
    room = max(RULES_MAX - len(foreign) - 1, 0)
    ours = [_uploads_rule(namespace), *(_topic_rule(namespace, topic) for topic in wanted[:room])]
    return Plan(
        rules=[*foreign, *ours][:RULES_MAX],
        left_out=[topic.topic for topic in wanted[room:]],
        threats=[rule.get("ID", "") for rule in foreign if _threatens(namespace, rule)],
    )


def days(retention_ms: int) -> int | None:
    """After how many days a segment has certainly expired; None if it never does.

    >>> [days(retention_ms) for retention_ms in (0, 1, 7 * 86_400_000, 7 * 86_400_000 + 1, -1)]
    [7, 8, 14, 15, None]
    """
    if retention_ms == FOREVER:
        return None
    whole_days = -(-retention_ms // _DAY_MS) + MARGIN_DAYS
    return whole_days if whole_days <= _DAYS_MAX else None


def is_same(rules: Iterable[Rule], others: Iterable[Rule]) -> bool:
    """Whether two sets of rules mean the same, in whatever order they are written."""

    def encoded(rule: Rule) -> bytes:
        return msgspec.json.encode(rule, order="sorted")

    return sorted(map(encoded, rules)) == sorted(map(encoded, others))


def is_ours(namespace: str, rule: Rule) -> bool:
    """Whether a rule was made here, for this namespace."""
    return str(rule.get("ID", "")).startswith(_id_prefix(namespace))


def _topic_rule(namespace: str, topic: TopicRetention) -> Rule:
    return {
        "ID": _id(namespace, topic.topic),
        "Status": "Enabled",
        "Filter": {"Prefix": f"{namespace}/{topic.topic}/"},
        "Expiration": {"Days": days(topic.retention_ms)},
        # In a bucket that keeps versions, what is deleted would else stay, and cost, for ever.
        "NoncurrentVersionExpiration": {"NoncurrentDays": _NONCURRENT_DAYS},
    }


def _uploads_rule(namespace: str) -> Rule:
    return {
        "ID": _id(namespace, _UPLOADS),
        "Status": "Enabled",
        "Filter": {"Prefix": f"{namespace}/"},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": _ABORT_DAYS},
    }


def _id_prefix(namespace: str) -> str:
    return f"kafscale/{namespace}/"


def _id(namespace: str, name: str) -> str:
    """What a rule is called; where the name is too long for S3, what it comes down to."""
    whole = _id_prefix(namespace) + name
    if len(whole) <= _ID_LENGTH_MAX:
        return whole
    return _id_prefix(namespace) + hashlib.sha256(name.encode()).hexdigest()


def _threatens(namespace: str, rule: Rule) -> bool:
    """Whether a rule of others expires objects in our namespace; where it is in doubt, yes."""
    if rule.get("Status") != "Enabled" or "Expiration" not in rule:
        return False
    narrowing: Rule = rule.get("Filter", {})
    narrowing = narrowing.get("And", narrowing)
    prefix = narrowing.get("Prefix", rule.get("Prefix", ""))
    ours = f"{namespace}/"
    return bool(prefix.startswith(ours) or ours.startswith(prefix))
