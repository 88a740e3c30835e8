"""What is planned for a topic: each rule by itself, and all of them against any history."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kafscale.operator.spec.status import TopicStatus
from kafscale.operator.topics.plan import Alter, Create, Grow, plan
from unit.operator.topics.resources import ID, WEEK, dotted, ours, resource, topic

NEW = TopicStatus()
RETENTION = {"retention.ms": WEEK, "retention.bytes": "-1"}


def condition(planned, type_):
    return next((each for each in planned.conditions if each.type == type_), None)


def planned(wanted, before=NEW, now=None, older=None):
    return plan(wanted, before, now, older)


# --- creating -------------------------------------------------------------------------------------


def test_a_topic_that_is_not_there_is_made_with_everything_that_is_named():
    wanted = resource(
        partitions=12, retentionMs=1000, config={"compression.type": "snappy", "segment.ms": " 07 "}
    )
    made = planned(wanted)
    configs = dotted(
        {"retention_ms": "1000", "retention_bytes": "-1", "compression_type": "snappy"}
    ) | {"segment.ms": "7"}
    assert made.actions == (Create(12, configs),)
    assert (made.applied.partitions, made.applied.config) == (12, configs)
    assert made.phase == "Ready"
    assert condition(made, "Ready").status == "True"
    assert condition(made, "InSync").status == "True"
    assert not made.is_adoption


def test_a_topic_that_others_have_deleted_is_made_again():
    assert planned(resource(), ours()).actions == (Create(3, RETENTION),)


# --- what has changed, and who has changed it -----------------------------------------------------


def test_nothing_is_done_where_everything_is_as_it_should_be():
    settled = planned(resource(), ours(), topic(**dotted_keys(RETENTION)))
    assert settled.actions == ()
    assert condition(settled, "InSync").status == "True"


def dotted_keys(configs):
    return {name.replace(".", "_"): value for name, value in configs.items()}


def now(partitions=3, **configs):
    return topic(partitions, **dotted_keys(RETENTION) | configs)


def test_a_topic_grows_when_more_partitions_are_asked_for():
    assert planned(resource(partitions=5), ours(3), now(3)).actions == (Grow(5),)


def test_partitions_that_others_have_added_stay():
    """N-25."""
    kept = planned(resource(partitions=3), ours(3), now(8))
    assert kept.actions == ()
    assert condition(kept, "Ready").status == "True"
    told = condition(kept, "InSync")
    assert (told.status, told.reason) == ("False", "ChangedElsewhere")
    assert "there are 8 partitions, not 3" in told.message
    assert planned(resource(partitions=5), ours(3), now(8)).actions == ()


def test_a_value_that_the_resource_has_changed_is_set_whatever_others_did():
    wanted = resource(retentionMs=5)
    alter = Alter({"retention.ms": "5"}, {})
    assert planned(wanted, ours(), now()).actions == (alter,)
    assert planned(wanted, ours(), now(retention_ms="77")).actions == (alter,)
    assert planned(wanted, ours(), now(retention_ms="5")).actions == ()


def test_a_value_that_others_have_changed_is_left_alone_and_told_of():
    drifted = planned(resource(), ours(), now(retention_ms="77"))
    assert drifted.actions == ()
    assert f"retention.ms is 77, not {WEEK}" in condition(drifted, "InSync").message
    reset = topic(retention_bytes="-1")
    assert (
        "retention.ms is at its default"
        in condition(planned(resource(), ours(), reset), "InSync").message
    )


def test_what_the_resource_never_named_is_left_alone():
    kept = planned(resource(retentionMs=5), ours(), now(segment_ms="9"))
    assert kept.actions == (Alter({"retention.ms": "5"}, {}),)
    assert kept.actions[0].on({"segment.ms": "9"}) == {"segment.ms": "9", "retention.ms": "5"}
    assert condition(kept, "InSync").status == "True"


def test_a_config_that_is_named_no_longer_is_reset_if_it_is_still_ours():
    before = ours(segment_ms="9")
    dropped = planned(resource(), before, now(segment_ms="9"))
    assert dropped.actions == (Alter({}, {"segment.ms": "9"}),)
    assert dropped.applied.config == RETENTION
    assert planned(resource(), before, now(segment_ms="10")).actions == ()
    assert planned(resource(), before, now()).actions == ()


def test_a_reset_spares_a_value_that_was_changed_in_the_last_moment():
    alter = Alter({}, {"segment.ms": "9"})
    assert alter.on({"segment.ms": "9", "segment.bytes": "1"}) == {"segment.bytes": "1"}
    assert alter.on({"segment.ms": "10"}) == {"segment.ms": "10"}


def test_only_some_differences_are_told_of_by_name():
    names = ["segment.ms", "segment.bytes", "max.message.bytes", "min.insync.replicas"]
    wanted = dict.fromkeys(names, "5")
    before = ours(**dotted_keys(wanted))
    told = condition(planned(resource(config=wanted), before, topic(9)), "InSync").message
    assert told.count(" is at its default") == 4
    assert "; and more" in told


# --- adopting -------------------------------------------------------------------------------------


def test_a_topic_that_is_there_already_is_adopted_with_what_the_resource_names():
    adopted = planned(resource(partitions=5), NEW, topic(3, retention_ms="1", segment_ms="9"))
    assert adopted.is_adoption
    assert adopted.actions == (Grow(5), Alter(RETENTION, {}))
    assert adopted.actions[1].on({"segment.ms": "9"})["segment.ms"] == "9"


def test_a_topic_with_more_partitions_is_adopted_as_it_is():
    adopted = planned(resource(partitions=2), NEW, now(8))
    assert adopted.is_adoption
    assert adopted.actions == ()
    assert condition(adopted, "Ready").status == "True"
    assert "8 partitions, not 2" in condition(adopted, "InSync").message


def test_another_topic_of_the_same_name_is_adopted_anew():
    """What was applied to the one before says nothing about this one."""
    another = topic(1, id_=ID[::-1], segment_ms="9")
    adopted = planned(resource(partitions=3), ours(3, segment_ms="9"), another)
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
        ({"topicName": ".."}, "InvalidName", "topic name '..' is not allowed"),
        ({"topicName": "__consumer_offsets"}, "InvalidName", "reserved"),
    ],
)
@pytest.mark.parametrize("there", [None, now()])
def test_a_resource_that_is_wrong_changes_nothing(spec, reason, message, there):
    refused = planned(resource(partitions=9, **spec), ours(), there)
    assert refused.actions == ()
    assert refused.phase == "Failed"
    assert refused.applied == ours().applied
    (told,) = refused.conditions
    assert (told.type, told.status, told.reason) == ("Ready", "False", reason)
    assert message in told.message


def test_the_younger_of_two_resources_changes_nothing():
    older = resource("first", topicName="orders")
    refused = planned(resource(partitions=9), NEW, now(), older)
    assert refused.actions == ()
    assert not refused.is_adoption
    (told,) = refused.conditions
    assert (told.status, told.reason) == ("False", "Conflict")
    assert "'first'" in told.message


# --- any history ----------------------------------------------------------------------------------

NAMES = ["segment.ms", "segment.bytes", "max.message.bytes"]
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


def carried_out(made, there):
    """The topic after a plan."""
    for action in made.actions:
        match action:
            case Create():
                there = replace(topic(action.partitions), configs=dict(action.configs))
            case Grow():
                assert action.partitions > there.partitions, "a topic never shrinks"
                there = replace(there, partitions=action.partitions)
            case Alter():
                there = replace(there, configs=action.on(there.configs))
    return there


@given(STEPS)
def test_whatever_happens_nothing_shrinks_and_nothing_is_touched_that_did_not_change(steps):
    """Specs and the API change things in any order, and the operator may die before it reports."""
    wanted, before, there = resource(), NEW, None
    named = set()
    for step in [*steps, ("reconcile", True)]:
        match step:
            case ("spec", partitions, config, retention):
                wanted = resource(partitions=partitions, config=config, retentionMs=retention)
            case ("grow", more) if there:
                there = replace(there, partitions=there.partitions + more)
            case ("set", name, value) if there:
                there = replace(there, configs={**there.configs, name: value})
            case ("reset", name) if there:
                kept = {key: value for key, value in there.configs.items() if key != name}
                there = replace(there, configs=kept)
            case ("reconcile", is_told):
                made = planned(wanted, before, there)
                after = carried_out(made, there)
                named |= made.applied.config.keys()
                assert after.partitions >= wanted.spec.partitions
                if there:
                    check_touched(made, before, there, after, named)
                there = after
                if is_told:
                    before = TopicStatus(topic_id=ID.hex(), applied=made.applied)
                    assert planned(wanted, before, there).actions == ()


def check_touched(made, before, there, after, named):
    assert after.partitions >= there.partitions
    last = before.applied.config if before.applied else {}
    names = there.configs.keys() | after.configs.keys()
    changed = {name for name in names if there.configs.get(name) != after.configs.get(name)}
    wanted = made.applied.config
    assert changed <= named
    assert all(wanted.get(name) != last.get(name) for name in changed)
    for name in changed - wanted.keys():
        assert there.configs[name] == last[name], "what others have set is never reset"
