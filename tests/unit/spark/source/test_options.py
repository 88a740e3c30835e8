"""Tests of the options: those of Spark's Kafka source, with its rules, and our own."""

import pickle

import pytest

from kafscale.errors import InvalidRequestError
from kafscale.spark.codec import columns
from kafscale.spark.plan.offset_bounds import (
    EARLIEST,
    LATEST,
    GlobalOffset,
    GlobalTimestamp,
    SpecificOffsets,
    SpecificTimestamps,
)
from kafscale.spark.source.options import NAMES, parse

REQUIRED = {"subscribe": "orders", "path": "s3://records/production"}


def options(**given):
    return parse(REQUIRED | given)


def test_defaults():
    result = options()
    assert result.batch_bounds() == (GlobalOffset(EARLIEST), GlobalOffset(LATEST))
    assert result.stream_start() == GlobalOffset(LATEST)
    assert result.fail_on_data_loss
    assert result.columns == columns.ALL
    assert result.task_bytes == 128 * 2**20
    assert (result.tasks_min, result.records_per_task_max) == (0, 0)
    assert result.offsets_per_trigger_max is result.offsets_per_trigger_min is None
    assert result.trigger_delay_ms_max == 900_000
    assert result.starting_side.needs_record
    assert not result.ending_side.needs_record
    assert not result.starting_side.clips


def test_option_names_are_case_insensitive():
    parsed = parse(
        {"SUBSCRIBE": "orders", "Path": "x", "s3.PATHSTYLE": "true", "minpartitions": "3"}
    )
    assert parsed.location == {"path": "x", "s3.pathStyle": "true"}
    assert parsed.tasks_min == 3


@pytest.mark.parametrize("name", ["isolationLevel", "kafka.isolation.level", "ISOLATIONLEVEL"])
def test_isolation_level_is_spelled_as_in_kafkas_source(name):
    assert options().is_committed
    assert options(**{name: "read_committed"}).is_committed
    assert not options(**{name: "Read_Uncommitted"}).is_committed
    with pytest.raises(InvalidRequestError, match="must be read_committed or read_uncommitted"):
        options(**{name: "serializable"})


def test_options_can_be_pickled():
    result = options(startingOffsets='{"orders": {"0": 3}}', columns="offset")
    assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301 - our own bytes.


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("kafka.bootstrap.servers", "set path to"),
        ("kafka.group.id", "set path to"),
        ("groupIdPrefix", "no consumer"),
        ("kafkaConsumer.pollTimeoutMs", "no consumer"),
        ("fetchOffset.numRetries", "no consumer"),
        ("startingOfsets", "did you mean startingOffsets"),
        ("s3.secretKey", "unknown option s3.secretKey"),
        ("zzz", "known: assign, columns"),
    ],
)
def test_unsupported_options_are_rejected_with_a_hint(name, hint):
    with pytest.raises(InvalidRequestError, match=hint) as raised:
        options(**{name: "hidden"})
    assert name in str(raised.value)
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize(
    "given",
    [{}, {"subscribe": "a", "assign": '{"a": [0]}'}, {"subscribe": "a", "subscribePattern": "a.*"}],
)
def test_exactly_one_subscription_option_is_required(given):
    with pytest.raises(InvalidRequestError, match="exactly one of subscribe, subscribePattern"):
        parse({"path": "x", **given})


def test_timestamps_take_precedence_over_offsets():
    named = '{"orders": {"0": 3}}'
    starting = {"startingOffsets": named}
    assert options(**starting).starting == SpecificOffsets({("orders", 0): 3})
    starting["startingOffsetsByTimestamp"] = named
    assert options(**starting).starting == SpecificTimestamps({("orders", 0): 3})
    starting["startingTimestamp"] = "7"
    assert options(**starting).starting == GlobalTimestamp(7)
    assert options(endingTimestamp="7", endingOffsets=named).ending == GlobalTimestamp(7)


def test_two_names_of_an_option_may_not_contradict_each_other():
    committed, uncommitted = {"isolationLevel": "read_committed"}, "READ_uncommitted "
    for given in (
        {**committed, "kafka.isolation.level": uncommitted},
        {"kafka.isolation.level": uncommitted, **committed},
    ):
        with pytest.raises(InvalidRequestError, match="same option"):
            options(**given)
    same = {"isolationLevel": "read_uncommitted", "kafka.isolation.level": uncommitted}
    assert not options(**same).is_committed


def test_earliest_and_latest_are_case_insensitive():
    assert options(startingOffsets="EARLIEST").starting == GlobalOffset(EARLIEST)
    assert options(endingOffsets="Latest").ending == GlobalOffset(LATEST)


def test_a_batch_cannot_start_at_latest_or_end_at_earliest():
    for rejected, message in [
        ({"startingOffsets": "latest"}, "startingOffsets cannot be latest"),
        ({"startingOffsets": '{"a": {"0": -1}}'}, "startingOffsets of a/0 cannot be latest"),
        ({"endingOffsets": "earliest"}, "endingOffsets cannot be earliest"),
        ({"endingOffsets": '{"a": {"1": -2}}'}, "endingOffsets of a/1 cannot be earliest"),
    ]:
        with pytest.raises(InvalidRequestError, match=message):
            options(**rejected).batch_bounds()
    assert options(startingOffsets="latest").stream_start() == GlobalOffset(LATEST)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_ending_options_are_rejected_for_streams(name):
    value = "5" if name == "endingTimestamp" else '{"a": {"0": 5}}'
    with pytest.raises(InvalidRequestError, match="streams, which have no end"):
        options(**{name: value}).stream_start()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("startingOffsets", "first"),
        ("startingOffsets", '{"a": {"0": -3}}'),
        ("startingOffsetsByTimestamp", '{"a": {"0": -1}}'),
        ("startingTimestamp", "yesterday"),
        ("startingTimestamp", "-1"),
        ("startingOffsetsByTimestampStrategy", "earliest"),
        ("failOnDataLoss", "maybe"),
        ("includeHeaders", "1"),
        ("minPartitions", "0"),
        ("maxRecordsPerPartition", "-5"),
        ("maxOffsetsPerTrigger", "many"),
        ("minOffsetsPerTrigger", "1.5"),
        ("maxTriggerDelay", "soon"),
        ("taskBytes", "0"),
        ("taskBytes", "large"),
    ],
)
def test_invalid_values_are_rejected_by_name(name, value):
    with pytest.raises(InvalidRequestError, match=name):
        options(**{name: value})


def test_minimum_offsets_cannot_exceed_the_maximum():
    with pytest.raises(InvalidRequestError, match=r"minOffsetsPerTrigger \(5\)"):
        options(minOffsetsPerTrigger="5", maxOffsetsPerTrigger="4")
    assert options(minOffsetsPerTrigger="4", maxOffsetsPerTrigger="4").offsets_per_trigger_max == 4


@pytest.mark.parametrize(
    ("text", "delay_ms"),
    [
        ("15m", 900_000),
        ("90s", 90_000),
        ("2min", 120_000),
        ("1h", 3_600_000),
        ("250", 250),
        ("1d", 86_400_000),
        ("7 ms", 7),
        ("2000us", 2),
    ],
)
def test_durations_have_sparks_units(text, delay_ms):
    assert options(maxTriggerDelay=text).trigger_delay_ms_max == delay_ms


def test_columns_and_include_headers():
    assert options(includeHeaders="true").columns == columns.ALL_WITH_HEADERS
    assert options(columns="offset, value").columns.names == ("value", "offset")
    assert options(columns="offset", includeHeaders="true").columns.names == ("offset",)


def test_allowed_data_loss_clips_offsets():
    result = options(failOnDataLoss="FALSE", startingOffsetsByTimestampStrategy="latest")
    assert result.starting_side.clips
    assert result.ending_side.clips
    assert not result.starting_side.needs_record


def test_option_names_are_distinct():
    assert {"assign", "subscribe", "subscribePattern", "maxTriggerDelay", "minPartitions"} < NAMES
    assert len({name.lower() for name in NAMES}) == len(NAMES)
