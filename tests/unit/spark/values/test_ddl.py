"""Tests of schemas as text."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import ConfigError
from kafscale.spark.values import ddl
from kafscale.spark.values.base import TIMESTAMP, list_of

PLAIN = [
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(10, 2),
    pa.decimal128(38, 38),
    pa.string(),
    pa.binary(),
    pa.date32(),
    TIMESTAMP,
]


def fields(types):
    names = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=8)
    one = st.builds(pa.field, names, types, nullable=st.booleans())
    return st.lists(one, min_size=1, max_size=4, unique_by=lambda field: field.name)


TYPES = st.recursive(
    st.sampled_from(PLAIN),
    lambda inner: st.one_of(
        inner.map(list_of),
        inner.map(lambda item: pa.map_(pa.string(), item)),
        fields(inner).map(pa.struct),
    ),
    max_leaves=5,
)


@given(fields(TYPES).map(pa.schema))
def test_render_and_parse_round_trip(schema):
    assert ddl.parse(ddl.render(schema)) == schema


def test_parse_accepts_any_case_and_spacing():
    schema = ddl.parse(
        "id LONG NOT NULL, name String, price decimal(10,2), tags array<string>,\n"
        "address struct<city:string, zip: Int>, counts map<string, bigint>, at TIMESTAMP,"
        "`a b` date"
    )
    assert schema == pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("name", pa.string()),
            ("price", pa.decimal128(10, 2)),
            ("tags", list_of(pa.string())),
            ("address", pa.struct([("city", pa.string()), ("zip", pa.int32())])),
            ("counts", pa.map_(pa.string(), pa.int64())),
            ("at", pa.timestamp("us", tz="UTC")),
            ("a b", pa.date32()),
        ]
    )


@pytest.mark.parametrize(
    ("words", "type_"),
    [
        ("boolean", pa.bool_()),
        ("tinyint byte", pa.int8()),
        ("smallint short", pa.int16()),
        ("int integer", pa.int32()),
        ("bigint long", pa.int64()),
        ("float real", pa.float32()),
        ("double", pa.float64()),
        ("binary", pa.binary()),
        ("decimal", pa.decimal128(10, 0)),
    ],
)
def test_parse_accepts_all_type_names(words, type_):
    for word in words.split():
        assert ddl.parse(f"a {word}").field("a").type == type_


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "unexpected end"),
        ("a", "unexpected end"),
        ("a text", "unknown type text"),
        ("a int,", "unexpected end"),
        ("a int b int", "unexpected b"),
        ("a int, a long", "duplicate field a"),
        ("a array<int", "unexpected end"),
        ("a array(int)", "expected <, not ("),
        ("a map<int, int>", "map keys must be strings"),
        ("a decimal(39,2)", "invalid type decimal(39,2)"),
        ("a decimal(2,3)", "invalid type decimal(2,3)"),
        ("a decimal(x)", "expected a number, not x"),
        ("a int not", "unexpected end"),
        ("a int not here", "expected null, not here"),
        ("; drop", "unexpected ; drop"),
        ("a " + "array<" * 60 + "int" + ">" * 60, "nested more than"),
    ],
)
def test_parse_rejects_invalid_schemas(text, reason):
    with pytest.raises(ConfigError) as caught:
        ddl.parse(text)
    assert reason in str(caught.value)


def test_render_rejects_unknown_types():
    with pytest.raises(ConfigError, match="time64"):
        ddl.render(pa.schema([("a", pa.time64("us"))]))
