"""Tests of the plan for a topic: each rule separately, and all of them against any history."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kafscale.operator.spec.status import TopicStatus
from kafscale.operator.topics.plan import Alter, Create, Grow, plan
from unit.operator.topics.resources import ID, WEEK, applied_status, resource, topic, with_dots

NEW = TopicStatus()
RETENTION = {"retention.ms": WEEK, "retention.bytes": "-1"}


def condition(plan_for, type_):
    return next((each for each in plan_for.conditions if each.type == type_), None)


def plan_for(desired, before=NEW, now=None, conflicting=None):
    return plan(desired, before, now, conflicting)


# --- creating -------------------------------------------------------------------------------------


def test_missing_topic_is_created_with_all_named_configs():
    desired = resource(
        partitions=12, retentionMs=1000, config={"compression.type": "snappy", "segment.ms": " 07 "}
    )
    created = plan_for(desired)
    configs = with_dots(
        {"retention_ms": "1000", "retention_bytes": "-1", "compression_type": "snappy"}
    ) | {"segment.ms": "7"}
    assert created.actions == (Create(12, configs),)
    assert (created.applied.partitions, created.applied.config) == (12, configs)
    assert created.phase == "Ready"
    assert condition(created, "Ready").status == "True"
    assert condition(created, "InSync").status == "True"
    assert not created.is_adoption


def test_deleted_topic_is_created_again():
    assert plan_for(resource(), applied_status()).actions == (Create(3, RETENTION),)


# --- what has changed, and who has changed it -----------------------------------------------------


def test_no_action_if_everything_matches():
    wait_for_watches = plan_for(resource(), applied_status(), topic(**dotted_keys(RETENTION)))
    assert wait_for_watches.actions == ()
    assert condition(wait_for_watches, "InSync").status == "True"


def dotted_keys(configs):
    return {name.replace(".", "_"): value for name, value in configs.items()}


def now(partitions=3, **configs):
    return topic(partitions, **dotted_keys(RETENTION) | configs)


def test_partitions_are_added():
    assert plan_for(resource(partitions=5), applied_status(3), now(3)).actions == (Grow(5),)


def test_partitions_added_elsewhere_are_kept():
    """N-25."""
    unchanged = plan_for(resource(partitions=3), applied_status(3), now(8))
    assert unchanged.actions == ()
    assert condition(unchanged, "Ready").status == "True"
    reported = condition(unchanged, "InSync")
    assert (reported.status, reported.reason) == ("False", "ChangedElsewhere")
    assert "there are 8 partitions, not 3" in reported.message
    assert plan_for(resource(partitions=5), applied_status(3), now(8)).actions == ()


def test_config_changed_in_the_resource_is_applied():
    desired = resource(retentionMs=5)
    alter = Alter({"retention.ms": "5"}, {})
    assert plan_for(desired, applied_status(), now()).actions == (alter,)
    assert plan_for(desired, applied_status(), now(retention_ms="77")).actions == (alter,)
    assert plan_for(desired, applied_status(), now(retention_ms="5")).actions == ()


def test_config_changed_elsewhere_is_kept_and_reported():
    drifted = plan_for(resource(), applied_status(), now(retention_ms="77"))
    assert drifted.actions == ()
    assert f"retention.ms is 77, not {WEEK}" in condition(drifted, "InSync").message
    reset = topic(retention_bytes="-1")
    assert (
        "retention.ms is at its default"
        in condition(plan_for(resource(), applied_status(), reset), "InSync").message
    )


def test_unnamed_configs_are_left_alone():
    unchanged = plan_for(resource(retentionMs=5), applied_status(), now(segment_ms="9"))
    assert unchanged.actions == (Alter({"retention.ms": "5"}, {}),)
    assert unchanged.actions[0].on({"segment.ms": "9"}) == {"segment.ms": "9", "retention.ms": "5"}
    assert condition(unchanged, "InSync").status == "True"


def test_removed_config_is_reset_if_unchanged():
    before = applied_status(segment_ms="9")
    dropped = plan_for(resource(), before, now(segment_ms="9"))
    assert dropped.actions == (Alter({}, {"segment.ms": "9"}),)
    assert dropped.applied.config == RETENTION
    assert plan_for(resource(), before, now(segment_ms="10")).actions == ()
    assert plan_for(resource(), before, now()).actions == ()


def test_reset_keeps_a_concurrent_change():
    alter = Alter({}, {"segment.ms": "9"})
    assert alter.on({"segment.ms": "9", "segment.bytes": "1"}) == {"segment.bytes": "1"}
    assert alter.on({"segment.ms": "10"}) == {"segment.ms": "10"}


def test_only_some_differences_are_named():
    names = ["segment.ms", "flush.ms", "max.message.bytes", "min.insync.replicas"]
    desired = dict.fromkeys(names, "5")
    before = applied_status(**dotted_keys(desired))
    reported = condition(plan_for(resource(config=desired), before, topic(9)), "InSync").message
    assert reported.count(" is at its default") == 4
    assert "; and more" in reported


# --- adopting -------------------------------------------------------------------------------------


def test_existing_topic_is_adopted_with_the_named_configs():
    adopted = plan_for(resource(partitions=5), NEW, topic(3, retention_ms="1", segment_ms="9"))
    assert adopted.is_adoption
    assert adopted.actions == (Grow(5), Alter(RETENTION, {}))
    assert adopted.actions[1].on({"segment.ms": "9"})["segment.ms"] == "9"


def test_topic_with_more_partitions_is_adopted_unchanged():
    adopted = plan_for(resource(partitions=2), NEW, now(8))
    assert adopted.is_adoption
    assert adopted.actions == ()
    assert condition(adopted, "Ready").status == "True"
    assert "8 partitions, not 2" in condition(adopted, "InSync").message


def test_recreated_topic_is_adopted_again():
    """What was applied to the former topic says nothing about this one."""
    another = topic(1, id_=ID[::-1], segment_ms="9")
    adopted = plan_for(resource(partitions=3), applied_status(3, segment_ms="9"), another)
    assert adopted.is_adoption
    assert adopted.actions == (Grow(3), Alter(RETENTION, {}))


# --- refusing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        (
            {"config": {"segment.ms": "0"}},
            "InvalidConfig",
            "Invalid value 0 for configuration segment.ms: Value must be at least 1",
        ),
        ({"config": {"nonsense": "1"}}, "InvalidConfig", "Unknown topic config name: nonsense"),
        (
            {"config": {"retention.ms": "1"}},
            "InvalidConfig",
            "retention.ms has a field of its own: use retentionMs",
        ),
        ({"topicName": ".."}, "InvalidName", "Topic name is invalid: '..' is not allowed"),
        ({"topicName": "__consumer_offsets"}, "InvalidName", "reserved"),
    ],
)
@pytest.mark.parametrize("existing", [None, now()])
def test_invalid_resource_changes_nothing(spec, reason, message, existing):
    rejected = plan_for(resource(partitions=9, **spec), applied_status(), existing)
    assert rejected.actions == ()
    assert rejected.phase == "Failed"
    assert rejected.applied == applied_status().applied
    (reported,) = rejected.conditions
    assert (reported.type, reported.status, reported.reason) == ("Ready", "False", reason)
    assert message in reported.message


def test_younger_of_two_resources_changes_nothing():
    conflicting = resource("first", topicName="orders")
    rejected = plan_for(resource(partitions=9), NEW, now(), conflicting)
    assert rejected.actions == ()
    assert not rejected.is_adoption
    (reported,) = rejected.conditions
    assert (reported.status, reported.reason) == ("False", "Conflict")
    assert "'first'" in reported.message


# --- any history ----------------------------------------------------------------------------------

NAMES = ["segment.ms", "flush.ms", "max.message.bytes"]
VALUES = st.sampled_from(["1", "2", "3"])
CONFIGS = st.dictionaries(st.sampled_from(NAMES), VALUES)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("spec"), st.integers(1, 6), CONFIGS, st.integers(1, 3)),
        st.tuples(st.just("grow"), st.integers(1, 6)),
        st.tuples(st.just("set"), st.sampled_from([*NAMES, "retention.ms"]), VALUES),
        st.tuples(st.just("reset"), st.sampled_from([*NAMES, "retention.ms"])),
        st.tuples(st.just("reconcile"), st.booleans()),
    ),
    max_size=12,
)


def execute_plan(created, existing):
    """The topic after a plan."""
    for action in created.actions:
        match action:
            case Create():
                existing = replace(topic(action.partitions), configs=dict(action.configs))
            case Grow():
                assert action.partitions > existing.partitions, "a topic never shrinks"
                existing = replace(existing, partitions=action.partitions)
            case Alter():
                existing = replace(existing, configs=action.on(existing.configs))
    return existing


@given(STEPS)
def test_any_history_never_shrinks_or_overwrites(steps):
    """Specs and the API change in any order, and the operator may stop before it reports."""
    desired, before, existing = resource(), NEW, None
    ever_named = set()
    for step in [*steps, ("reconcile", True)]:
        match step:
            case ("spec", partitions, config, retention):
                desired = resource(partitions=partitions, config=config, retentionMs=retention)
            case ("grow", more) if existing:
                existing = replace(existing, partitions=existing.partitions + more)
            case ("set", name, value) if existing:
                existing = replace(existing, configs={**existing.configs, name: value})
            case ("reset", name) if existing:
                unchanged = {key: value for key, value in existing.configs.items() if key != name}
                existing = replace(existing, configs=unchanged)
            case ("reconcile", is_reported):
                created = plan_for(desired, before, existing)
                after = execute_plan(created, existing)
                ever_named |= created.applied.config.keys()
                assert after.partitions >= desired.spec.partitions
                if existing:
                    check_changes(created, before, existing, after, ever_named)
                existing = after
                if is_reported:
                    before = TopicStatus(topic_id=ID.hex(), applied=created.applied)
                    assert plan_for(desired, before, existing).actions == ()


def check_changes(created, before, existing, after, ever_named):
    assert after.partitions >= existing.partitions
    last = before.applied.config if before.applied else {}
    names = existing.configs.keys() | after.configs.keys()
    changed = {name for name in names if existing.configs.get(name) != after.configs.get(name)}
    desired = created.applied.config
    assert changed <= ever_named
    assert all(desired.get(name) != last.get(name) for name in changed)
    for name in changed - desired.keys():
        assert existing.configs[name] == last[name], "what others have set is never reset"
