"""Tests of generating schemas from classes: every type of field, and defaults of objects."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, field

from generators.crds.schema import spec_schema, status_schema
from kafscale.operator.spec.base import Spec, list_map, text
from unit.generators.crds.structural import with_defaults


class Leaf(Spec, frozen=True, kw_only=True):
    """A leaf."""

    size: int = 1
    colour: str = "green"


class Named(Spec, frozen=True, kw_only=True):
    """A thing with a name."""

    name: str


class Tree(Spec, frozen=True, kw_only=True):
    """A tree
    of two lines."""

    is_high: bool
    first_leaf: Annotated[Leaf, text("The first one.")] = field(default_factory=Leaf)
    red_leaf: Leaf = field(default_factory=lambda: Leaf(colour="red"))
    lost_leaf: Leaf | None = None


def member(annotation: Any, **more: Any) -> dict[str, Any]:
    """The schema of a field with this type."""
    struct = msgspec.defstruct("Only", [("only", annotation, *more.values())], rename="camel")
    return spec_schema(struct)["properties"]["only"]


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (bool, {"type": "boolean"}),
        (int, {"type": "integer", "format": "int64"}),
        (
            Annotated[int, Meta(ge=1, le=9)],
            {"type": "integer", "format": "int64", "minimum": 1, "maximum": 9},
        ),
        (str, {"type": "string"}),
        (
            Annotated[str, Meta(min_length=1, max_length=9, pattern="^a")],
            {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a"},
        ),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, 3], {"type": "integer", "enum": [1, 3]}),
        (dict[str, str], {"type": "object", "additionalProperties": {"type": "string"}}),
        (
            Annotated[dict[str, str], Meta(max_length=3)],
            {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 3},
        ),
        (dict[str, Any], {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        (
            list[dict[str, Any]],
            {
                "type": "array",
                "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        ),
        (
            Annotated[list[str], Meta(max_length=3)],
            {
                "type": "array",
                "items": {"type": "string"},
                "x-kubernetes-list-type": "set",
                "maxItems": 3,
            },
        ),
    ],
)
def test_schema_of_each_type(annotation, schema):
    assert member(annotation) == schema
    assert member(annotation | None) == schema


def test_nearest_description_wins_and_comes_first():
    amount = Annotated[int, Meta(ge=0, description="An amount.")]
    schema = member(Annotated[amount, text("How many there are.")])
    assert next(iter(schema)) == "description"
    assert schema["description"] == "How many there are."
    assert schema["minimum"] == 0


def test_list_of_objects_is_merged_by_its_key():
    schema = member(Annotated[list[Named], list_map("name", "Things.")])
    assert schema["x-kubernetes-list-type"] == "map"
    assert schema["x-kubernetes-list-map-keys"] == ["name"]
    assert schema["items"]["required"] == ["name"]


@pytest.mark.parametrize("default", [0, "", False, [], {}])
def test_empty_defaults_are_set(default):
    kind = {list: list[str], dict: dict[str, str]}.get(type(default), type(default))
    assert member(kind, default=default)["default"] == default


def test_none_has_no_default():
    assert "default" not in member(int | None, default=None)
    assert "required" not in spec_schema(msgspec.defstruct("Only", [("only", int | None, None)]))


def test_fields_without_default_are_required():
    assert spec_schema(Tree)["required"] == ["isHigh"]


def test_description_of_an_object_is_overridden_by_its_field():
    schema = spec_schema(Tree)
    assert schema["description"] == "A tree of two lines."
    assert schema["properties"]["redLeaf"]["description"] == "A leaf."
    assert schema["properties"]["firstLeaf"]["description"] == "The first one."


@pytest.mark.parametrize(
    ("value", "effective"),
    [
        ({}, {"size": 1, "colour": "red"}),
        ({"redLeaf": {}}, {"size": 1, "colour": "red"}),
        ({"redLeaf": {"size": 5}}, {"size": 5, "colour": "red"}),
        ({"redLeaf": {"colour": "blue"}}, {"size": 1, "colour": "blue"}),
    ],
)
def test_objects_are_defaulted_field_by_field(value, effective):
    assert with_defaults(value, spec_schema(Tree))["redLeaf"] == effective


def test_optional_objects_are_not_defaulted():
    assert "lostLeaf" not in with_defaults({"isHigh": True}, spec_schema(Tree))


def test_status_has_no_defaults():
    assert "default" not in str(status_schema(Tree))
    assert status_schema(Tree)["required"] == ["isHigh"]


def test_unsupported_types_are_rejected():
    with pytest.raises(AssertionError, match="unsupported type"):
        member(float)
