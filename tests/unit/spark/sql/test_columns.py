"""Tests of the columns of a topic: inference and sampling."""

import json

import pyarrow as pa
import pytest

from kafscale.spark.read.bucket_listing import list_bucket
from kafscale.spark.read.location import Location
from kafscale.spark.sql import columns
from kafscale.spark.sql.columns import infer_columns
from unit.spark.stored_log import NAMESPACE, TOPIC, put_segment, value_of

TEXT = b"a key"
BYTES = b"\xff\x00"


def columns_of(*values, keys=(TEXT,)):
    return infer_columns(pa.array(keys, pa.binary()), pa.array(values, pa.binary()))


def objects(*rows):
    return [json.dumps(row).encode() for row in rows]


def test_fields_of_json_objects_are_columns():
    result = columns_of(*objects({"id": 1, "tags": ["a"]}, {"id": 2, "address": {"city": "Bonn"}}))
    assert result.fields.names == ["id", "tags", "address"]
    assert result.fields.field("id").type == pa.int64()
    assert result.is_key_text
    assert result.is_value_text


@pytest.mark.parametrize(
    "values",
    [
        [],
        [None, None],
        [b"plain text"],
        [b"17", b'"text"', b"null", b"[1]"],
        [b"{not json}"] * 3,
        [BYTES],
        [b'{"id": 1}', b"something", b"else"],
    ],
)
def test_other_values_have_no_fields(values):
    assert columns_of(*values).fields.names == []


def test_a_few_malformed_records_and_tombstones_are_ignored():
    values = [*objects(*({"id": number} for number in range(18))), b"broken", None, None]
    assert columns_of(*values).fields.names == ["id"]


@pytest.mark.parametrize(
    ("values", "is_text"), [([b"text", None], True), ([b"text", BYTES], False)]
)
def test_keys_and_values_are_text_if_all_are_utf8(values, is_text):
    assert columns_of(*values).is_value_text is is_text
    assert columns_of(b"x", keys=values).is_key_text is is_text


def test_reserved_and_repeated_field_names_are_left_out():
    (row,) = objects({"_key": 1, "_OFFSET": 2, "": 3, "Id": 4, "id": 5, "_other": 6})
    assert columns_of(row).fields.names == ["Id", "_other"]


def test_whitespace_around_an_object_is_ignored():
    assert columns_of(b' \n{"id":\n1}\n').fields.names == ["id"]


# --- sample ---------------------------------------------------------------------------------------


def sampled(tmp_path, *ranges, partitions=1):
    (tmp_path / "objects").mkdir()
    location = Location.parse(str(tmp_path))
    with location.open() as store:
        for partition in range(partitions):
            for offsets in ranges:
                put_segment(store, offsets, partition=partition)
        offset_map = list_bucket(store, NAMESPACE)
    _, values = columns.sample(location, offset_map, TOPIC)
    return values.to_pylist()


def test_sample_of_a_small_topic_is_complete(tmp_path):
    assert sampled(tmp_path, range(30)) == [value_of(offset) for offset in range(30)]


def test_sample_of_a_large_topic_has_both_ends(tmp_path):
    half = columns.SAMPLE_RECORDS_MAX // 2
    end = 4 * half
    result = sampled(tmp_path, range(end))
    assert result == [value_of(offset) for offset in (*range(half), *range(end - half, end))]


def test_sample_has_records_of_every_partition(tmp_path):
    result = sampled(tmp_path, range(100), partitions=100)
    assert len(result) == 100 * 2 * columns.SAMPLE_RECORDS_MIN
    assert result.count(value_of(0)) == result.count(value_of(99)) == 100


def test_sample_of_an_empty_topic(tmp_path):
    assert sampled(tmp_path) == []
