"""Options are those of Spark's Kafka source, with its rules; others are refused by name."""

import pickle

import pytest

from kafscale.errors import InvalidRequestError
from kafscale.spark.plan.offsets import EARLIEST, LATEST, Everywhere, Named, Since, SinceEach
from kafscale.spark.source import columns
from kafscale.spark.source.options import NAMES, parse

PLACES = {"subscribe": "orders", "path": "s3://records/production"}


def options(**given):
    return parse(PLACES | given)


def test_what_holds_unless_it_is_said_otherwise():
    found = options()
    assert found.batch_bounds() == (Everywhere(EARLIEST), Everywhere(LATEST))
    assert found.stream_start() == Everywhere(LATEST)
    assert found.fail_on_data_loss
    assert found.columns == columns.ALL
    assert found.task_bytes == 128 * 2**20
    assert (found.tasks_min, found.records_per_task_max) == (0, 0)
    assert found.offsets_per_trigger_max is found.offsets_per_trigger_min is None
    assert found.trigger_delay_ms_max == 900_000
    assert found.starting_side.needs_record
    assert not found.ending_side.needs_record
    assert not found.starting_side.clips


def test_names_may_be_written_in_any_case():
    found = parse(
        {"SUBSCRIBE": "orders", "Path": "x", "s3.PATHSTYLE": "true", "minpartitions": "3"}
    )
    assert found.location == {"path": "x", "s3.pathStyle": "true"}
    assert found.tasks_min == 3


def test_options_travel_to_other_processes():
    found = options(startingOffsets='{"orders": {"0": 3}}', columns="offset")
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301 - our own bytes.


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("kafka.bootstrap.servers", "give path instead"),
        ("kafka.group.id", "give path instead"),
        ("groupIdPrefix", "no consumer"),
        ("kafkaConsumer.pollTimeoutMs", "no consumer"),
        ("fetchOffset.numRetries", "no consumer"),
        ("startingOfsets", "is it startingOffsets"),
        ("s3.secretKey", "unknown option s3.secretKey"),
        ("zzz", "there are assign, columns"),
    ],
)
def test_other_options_are_refused_by_name_with_what_to_write_instead(name, hint):
    with pytest.raises(InvalidRequestError, match=hint) as refused:
        options(**{name: "hidden"})
    assert name in str(refused.value)
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    "given",
    [{}, {"subscribe": "a", "assign": '{"a": [0]}'}, {"subscribe": "a", "subscribePattern": "a.*"}],
)
def test_exactly_one_way_to_say_what_is_read(given):
    with pytest.raises(InvalidRequestError, match="exactly one of subscribe, subscribePattern"):
        parse({"path": "x", **given})


def test_a_time_for_all_wins_over_times_and_those_over_offsets():
    named = '{"orders": {"0": 3}}'
    starting = {"startingOffsets": named}
    assert options(**starting).starting == Named({("orders", 0): 3})
    starting["startingOffsetsByTimestamp"] = named
    assert options(**starting).starting == SinceEach({("orders", 0): 3})
    starting["startingTimestamp"] = "7"
    assert options(**starting).starting == Since(7)
    assert options(endingTimestamp="7", endingOffsets=named).ending == Since(7)


def test_words_for_offsets_are_read_in_any_case():
    assert options(startingOffsets="EARLIEST").starting == Everywhere(EARLIEST)
    assert options(endingOffsets="Latest").ending == Everywhere(LATEST)


def test_a_batch_cannot_begin_at_the_latest_offset_nor_end_at_the_earliest():
    for refused, name in [
        ({"startingOffsets": "latest"}, "startingOffsets cannot be latest"),
        ({"startingOffsets": '{"a": {"0": -1}}'}, "startingOffsets of a/0 cannot be latest"),
        ({"endingOffsets": "earliest"}, "endingOffsets cannot be earliest"),
        ({"endingOffsets": '{"a": {"1": -2}}'}, "endingOffsets of a/1 cannot be earliest"),
    ]:
        with pytest.raises(InvalidRequestError, match=name):
            options(**refused).batch_bounds()
    assert options(startingOffsets="latest").stream_start() == Everywhere(LATEST)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name):
    value = "5" if name == "endingTimestamp" else '{"a": {"0": 5}}'
    with pytest.raises(InvalidRequestError, match="a stream has no end"):
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
def test_a_value_that_cannot_be_is_refused_by_name(name, value):
    with pytest.raises(InvalidRequestError, match=name):
        options(**{name: value})


def test_a_step_cannot_need_more_than_it_may_have():
    with pytest.raises(InvalidRequestError, match="minOffsetsPerTrigger is 5"):
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
def test_a_delay_is_written_as_spark_writes_it(text, delay_ms):
    assert options(maxTriggerDelay=text).trigger_delay_ms_max == delay_ms


def test_columns_are_chosen_by_name_or_by_asking_for_headers():
    assert options(includeHeaders="true").columns == columns.ALL_WITH_HEADERS
    assert options(columns="offset, value").columns.names == ("value", "offset")
    assert options(columns="offset", includeHeaders="true").columns.names == ("offset",)


def test_loss_that_is_allowed_lets_offsets_give_way():
    found = options(failOnDataLoss="FALSE", startingOffsetsByTimestampStrategy="latest")
    assert found.starting_side.clips
    assert found.ending_side.clips
    assert not found.starting_side.needs_record


def test_there_are_as_many_options_as_the_kafka_source_has_and_some_of_ours():
    assert {"assign", "subscribe", "subscribePattern", "maxTriggerDelay", "minPartitions"} < NAMES
    assert len({name.lower() for name in NAMES}) == len(NAMES)
