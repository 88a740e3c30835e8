"""Lifecycle rules: never too early, never too many, and foreign rules preserved."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.storage.objects.s3.lifecycle import (
    MARGIN_DAYS,
    RULES_MAX,
    Archive,
    TopicRetention,
    days,
    is_same,
    plan,
)

DAY_MS = 86_400_000
UPLOADS = {
    "ID": "kafscale/production/_uploads",
    "Status": "Enabled",
    "Filter": {"Prefix": "production/"},
    "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
}
REFERENCE = [
    {
        "ID": "kafscale-retention-7-days",
        "Status": "Enabled",
        "Filter": {"Prefix": "production/"},
        "Expiration": {"Days": 7},
        "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
    },
    {
        "ID": "kafscale-transition-to-glacier",
        "Status": "Enabled",
        "Filter": {"Prefix": "archive/"},
        "Transitions": [{"Days": 30, "StorageClass": "GLACIER"}],
    },
]


def week(topic: str, size_bytes: int = 0) -> TopicRetention:
    return TopicRetention(topic, 7 * DAY_MS, size_bytes)


def test_rule_applies_to_the_objects_of_its_topic():
    planned = plan("production", [week("orders")], [])
    assert planned.rules == [
        UPLOADS,
        {
            "ID": "kafscale/production/orders",
            "Status": "Enabled",
            "Filter": {"Prefix": "production/orders/"},
            "Expiration": {"Days": 14},
            "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
        },
    ]
    assert (planned.left_out, planned.conflicting) == ([], [])


@given(retention_ms=st.integers(0, 10_000 * DAY_MS), age_ms=st.integers(0, 11_000 * DAY_MS))
def test_rule_expires_later_than_the_broker(retention_ms, age_ms):
    """S3 counts whole days from when an object was made, which is after its records came."""
    result = days(retention_ms)
    assert result is not None
    if age_ms >= result * DAY_MS:
        assert age_ms - retention_ms >= MARGIN_DAYS * DAY_MS
    assert result * DAY_MS < retention_ms + (MARGIN_DAYS + 1) * DAY_MS


@pytest.mark.parametrize("retention_ms", [-1, 2**63 - 1, 200 * 365 * DAY_MS])
def test_unlimited_retention_has_no_rule(retention_ms):
    assert plan("production", [TopicRetention("audit", retention_ms)], []).rules == [UPLOADS]


def test_rules_follow_topics_and_preserve_foreign_rules():
    """S-15."""
    others = [*REFERENCE, *plan("staging", [week("orders")], []).rules]
    first = plan("production", [week("orders"), week("clicks")], others).rules
    assert first[: len(others)] == others
    second = plan("production", [week("clicks")], first).rules
    assert second == plan("production", [week("clicks")], others).rules
    assert plan("staging", [], second).rules[: len(REFERENCE)] == REFERENCE
    assert is_same(plan("production", [week("clicks")], second).rules, second)


def test_archive_rule_applies_to_no_object_of_brokers():
    archive = Archive(after_days=30, storage_class="GLACIER")
    planned = plan("production", [week("orders")], REFERENCE, archive)
    rule = planned.rules[3]
    assert rule == {
        "ID": "kafscale/production/archive/",
        "Status": "Enabled",
        "Filter": {"Prefix": "archive/production/"},
        "Transitions": [{"Days": 30, "StorageClass": "GLACIER"}],
    }
    topics = [week("archive"), *(week(f"topic-{number}") for number in range(RULES_MAX))]
    full = plan("production", topics, [], archive)
    assert rule in full.rules
    assert len({each["ID"] for each in full.rules}) == RULES_MAX
    assert plan("production", [week("orders")], planned.rules).rules == [
        each for each in planned.rules if each != rule
    ]


def test_foreign_rules_that_expire_our_objects_are_reported():
    def rule(name: str, **parts: object) -> dict[str, object]:
        return {"ID": name, "Status": "Enabled", "Expiration": {"Days": 1}, **parts}

    result = [
        *REFERENCE,
        rule("whole bucket", Filter={}),
        rule("old style", Prefix="prod"),
        rule("inside", Filter={"Prefix": "production/_wal/"}),
        rule("tagged", Filter={"And": {"Prefix": "production/", "Tags": []}}),
        rule("elsewhere", Filter={"Prefix": "production-2/"}),
        rule("asleep", Filter={"Prefix": "production/"}) | {"Status": "Disabled"},
    ]
    conflicting = ["kafscale-retention-7-days", "whole bucket", "old style", "inside", "tagged"]
    assert plan("production", [], result).conflicting == conflicting


def test_with_too_many_topics_the_largest_have_a_rule():
    topics = [week(f"topic-{number:04d}", size_bytes=number) for number in range(1200)]
    planned = plan("production", topics, REFERENCE)
    assert len(planned.rules) == RULES_MAX
    assert planned.rules[:2] == REFERENCE
    assert planned.rules[3]["ID"] == "kafscale/production/topic-1199"
    assert len(planned.left_out) == 1200 - (RULES_MAX - 3)
    assert set(planned.left_out) == {f"topic-{n:04d}" for n in range(len(planned.left_out))}


def test_bucket_full_of_foreign_rules_keeps_them():
    others = [{"ID": f"other-{number}", "Status": "Disabled"} for number in range(RULES_MAX)]
    planned = plan("production", [week("orders")], others)
    assert planned.rules == others
    assert planned.left_out == ["orders"]


def test_long_rule_ids_are_shortened_and_stay_unique():
    namespace = "n" * 63
    topics = [week("t" * 248 + letter) for letter in "ab"]
    names = [rule["ID"] for rule in plan(namespace, topics, []).rules]
    assert len(set(names)) == 3
    assert max(map(len, names)) <= 255
    assert is_same(
        plan(namespace, [], plan(namespace, topics, []).rules).rules, plan(namespace, [], []).rules
    )


def test_rules_are_compared_regardless_of_order():
    rules = plan("production", [week("orders"), week("clicks")], REFERENCE).rules
    turned = [dict(reversed(rule.items())) for rule in reversed(rules)]
    assert is_same(rules, turned)
    assert not is_same(rules, turned[1:])
    assert not is_same(rules, [*turned[1:], turned[0] | {"Status": "Disabled"}])
