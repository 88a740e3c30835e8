"""Which columns a topic has as a table, seen from some of its records.

Where values are JSON objects, their fields are columns; what does not fit the field's type in
a later record is null there. Beside them stand the columns that every record has: `_key`, `_value`,
`_topic`, `_partition`, `_offset`, `_timestamp`, `_headers`. Keys and values are text if all that
were seen are, and bytes otherwise. The laws: a record that is no JSON is a row all the same, with
nulls for its fields; a field whose name is one of these, or differs from another only in case, has
no column, and is found in `_value`. Pure, but for Arrow.
"""

from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from kafscale.spark.values.json_inference import infer

COLUMNS: Final = {
    "_key": "key",
    "_value": "value",
    "_topic": "topic",
    "_partition": "partition",
    "_offset": "offset",
    "_timestamp": "timestamp",
    "_headers": "headers",
}
"""What every record has, and what the source calls it."""

JSON_SHARE_MIN: Final = 0.9
"""How many of the values have to be JSON objects; a few may be broken, or of another time."""


class Shape(msgspec.Struct, frozen=True):
    """The columns of a topic."""

    fields: pa.Schema
    """Those of its JSON objects; none if its values are something else."""
    is_key_text: bool
    is_value_text: bool


EMPTY: Final = Shape(pa.schema([]), is_key_text=True, is_value_text=True)
"""What a topic without records has."""


def shape(keys: pa.BinaryArray, values: pa.BinaryArray) -> Shape:
    """The columns that these records show."""
    is_value_text = _is_text(values)
    is_json = is_value_text and _json_share(values) >= JSON_SHARE_MIN
    fields = _distinct(infer(values)) if is_json else pa.schema([])
    return Shape(fields, is_key_text=_is_text(keys), is_value_text=is_value_text)


def _is_text(column: pa.BinaryArray) -> bool:
    try:
        column.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _json_share(values: pa.BinaryArray) -> float:
    """How many of the values that are there are JSON objects."""
    present = values.drop_null()
    if len(present) == 0:
        return 0.0
    # Most of what is no JSON is known by how it begins and ends.
    looks = pc.match_substring_regex(present.cast(pa.string()), r"^\s*\{(?s:.*)\}\s*$")
    alike = present.filter(looks)
    return sum(map(_is_object, alike.to_pylist())) / len(present)


def _is_object(value: bytes) -> bool:
    try:
        msgspec.json.decode(value, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _distinct(fields: pa.Schema) -> pa.Schema:
    taken = {"", *COLUMNS}
    kept = []
    for field in fields:
        if field.name.lower() not in taken:
            taken.add(field.name.lower())
            kept.append(field)
    return pa.schema(kept)
