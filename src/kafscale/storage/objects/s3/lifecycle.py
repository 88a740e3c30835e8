"""Lifecycle rules: let S3 delete old segments if no broker is left to do so.

Invariants:

* A rule supplements the broker's retention, and never deletes earlier. Days are rounded up
  and a margin is added: S3 counts from the creation of a segment, the broker from the timestamps in
  it, which may be later. A topic with unlimited retention has no rule.
* A rule applies to the objects of one topic. No rule applies to the whole bucket or to the WAL,
  which may hold the only copy of acknowledged records. The rule for incomplete multipart uploads is
  an exception: these are not objects yet.
* The archive of a namespace, `archive/{namespace}/`, contains no objects of brokers: they could not
  read what is in a storage class such as GLACIER.
* Foreign rules are preserved, in their order. Kafscale's rules are recognised by their ids, which
  contain the namespace, so clusters that share a bucket do not change each other's rules.
* S3 allows 1000 rules. If there are more topics, the largest ones get a rule.

Pure: `bucket_admin` calls S3.
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
"""A century; S3 allows more."""
_ABORT_DAYS: Final = 1
_NONCURRENT_DAYS: Final = 1
_UPLOADS: Final = "_uploads"
_ARCHIVE: Final = "archive/"
"""Not the directory of a topic, which has no slash."""

Rule = Mapping[str, Any]
"""A rule in the format of S3's API."""


class TopicRetention(msgspec.Struct, frozen=True):
    """The retention and size of a topic."""

    directory: str
    """The part of object keys that stands for the topic."""
    retention_ms: int
    size_bytes: int = 0


class Archive(msgspec.Struct, frozen=True):
    """When objects in the archive of a namespace are moved to which storage class."""

    after_days: int
    storage_class: str


class Plan(msgspec.Struct, frozen=True):
    """The rules that a bucket should have, and problems to report."""

    rules: Sequence[Rule]
    left_out: Sequence[str]
    """Topics without a rule, because of S3's limit."""
    conflicting: Sequence[str]
    """Ids of foreign rules that expire objects of this namespace."""


def longest_retention(retentions_ms: Iterable[int]) -> int:
    """The longest of some retention times.

    >>> longest_retention([5, 7]), longest_retention([5, FOREVER])
    (7, -1)
    """
    known = list(retentions_ms)
    return FOREVER if FOREVER in known else max(known)


def plan(
    namespace: str,
    topics: Iterable[TopicRetention],
    current: Sequence[Rule],
    archive: Archive | None = None,
) -> Plan:
    """Update the rules that a bucket has."""
    foreign = [rule for rule in current if not is_ours(namespace, rule)]
    largest = sorted(
        (topic for topic in topics if days(topic.retention_ms) is not None),
        key=lambda topic: (-topic.size_bytes, topic.directory),
    )
    others = [_uploads_rule(namespace)]
    if archive is not None:
        others.append(_archive_rule(namespace, archive))
    free = max(RULES_MAX - len(foreign) - len(others), 0)
    ours = [*others, *(_topic_rule(namespace, topic) for topic in largest[:free])]
    return Plan(
        rules=[*foreign, *ours][:RULES_MAX],
        left_out=[topic.directory for topic in largest[free:]],
        conflicting=[rule.get("ID", "") for rule in foreign if _may_expire_ours(namespace, rule)],
    )


def days(retention_ms: int) -> int | None:
    """The number of days after which a segment has certainly expired; None if never.

    >>> [days(retention_ms) for retention_ms in (0, 1, 7 * 86_400_000, 7 * 86_400_000 + 1, -1)]
    [7, 8, 14, 15, None]
    """
    if retention_ms == FOREVER:
        return None
    whole_days = -(-retention_ms // _DAY_MS) + MARGIN_DAYS
    return whole_days if whole_days <= _DAYS_MAX else None


def is_same(rules: Iterable[Rule], others: Iterable[Rule]) -> bool:
    """Whether two sets of rules are equal, regardless of their order."""

    def encoded(rule: Rule) -> bytes:
        return msgspec.json.encode(rule, order="sorted")

    return sorted(map(encoded, rules)) == sorted(map(encoded, others))


def is_ours(namespace: str, rule: Rule) -> bool:
    """Whether a rule was created by Kafscale for this namespace."""
    return str(rule.get("ID", "")).startswith(_id_prefix(namespace))


def _topic_rule(namespace: str, topic: TopicRetention) -> Rule:
    return {
        "ID": _id(namespace, topic.directory),
        "Status": "Enabled",
        "Filter": {"Prefix": f"{namespace}/{topic.directory}/"},
        "Expiration": {"Days": days(topic.retention_ms)},
        # Otherwise deleted objects would stay, and cost, forever in a versioned bucket.
        "NoncurrentVersionExpiration": {"NoncurrentDays": _NONCURRENT_DAYS},
    }


def _uploads_rule(namespace: str) -> Rule:
    return {
        "ID": _id(namespace, _UPLOADS),
        "Status": "Enabled",
        "Filter": {"Prefix": f"{namespace}/"},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": _ABORT_DAYS},
    }


def _archive_rule(namespace: str, archive: Archive) -> Rule:
    return {
        "ID": _id(namespace, _ARCHIVE),
        "Status": "Enabled",
        "Filter": {"Prefix": f"archive/{namespace}/"},
        "Transitions": [{"Days": archive.after_days, "StorageClass": archive.storage_class}],
    }


def _id_prefix(namespace: str) -> str:
    return f"kafscale/{namespace}/"


def _id(namespace: str, name: str) -> str:
    """The id of a rule; a hash if the name is too long for S3."""
    whole = _id_prefix(namespace) + name
    if len(whole) <= _ID_LENGTH_MAX:
        return whole
    return _id_prefix(namespace) + hashlib.sha256(name.encode()).hexdigest()


def _may_expire_ours(namespace: str, rule: Rule) -> bool:
    """Whether a foreign rule expires objects of this namespace; True if in doubt."""
    if rule.get("Status") != "Enabled" or "Expiration" not in rule:
        return False
    rule_filter: Rule = rule.get("Filter", {})
    rule_filter = rule_filter.get("And", rule_filter)
    prefix = rule_filter.get("Prefix", rule.get("Prefix", ""))
    ours = f"{namespace}/"
    return bool(prefix.startswith(ours) or ours.startswith(prefix))
