"""Which columns a topic shows, by what is in it."""

import json

import pyarrow as pa
import pytest

from kafscale.spark.sql.columns import shape

TEXT = b"a key"
BYTES = b"\xff\x00"


def shape_of(*values, keys=(TEXT,)):
    return shape(pa.array(keys, pa.binary()), pa.array(values, pa.binary()))


def objects(*rows):
    return [json.dumps(row).encode() for row in rows]


def test_the_fields_of_json_objects_are_columns():
    found = shape_of(*objects({"id": 1, "tags": ["a"]}, {"id": 2, "address": {"city": "Bonn"}}))
    assert found.fields.names == ["id", "tags", "address"]
    assert found.fields.field("id").type == pa.int64()
    assert found.is_key_text
    assert found.is_value_text


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
def test_whatever_else_there_is_has_no_fields(values):
    assert shape_of(*values).fields.names == []


def test_a_few_broken_records_and_tombstones_do_not_matter():
    values = [*objects(*({"id": number} for number in range(18))), b"broken", None, None]
    assert shape_of(*values).fields.names == ["id"]


@pytest.mark.parametrize(
    ("values", "is_text"), [([b"text", None], True), ([b"text", BYTES], False)]
)
def test_values_and_keys_are_text_if_all_of_them_are(values, is_text):
    assert shape_of(*values).is_value_text is is_text
    assert shape_of(b"x", keys=values).is_key_text is is_text


def test_fields_that_cannot_be_columns_are_left_out():
    (row,) = objects({"_key": 1, "_OFFSET": 2, "": 3, "Id": 4, "id": 5, "_other": 6})
    assert shape_of(row).fields.names == ["Id", "_other"]


def test_spaces_around_an_object_are_none_of_its_business():
    assert shape_of(b' \n{"id":\n1}\n').fields.names == ["id"]
