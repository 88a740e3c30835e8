"""From classes to schemas: every sort of field, and how objects are filled in."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, field

from kafscale.operator.crd.schema import spec_schema, status_schema
from kafscale.operator.spec.base import Spec, keyed, text
from unit.operator.crd.structural import filled


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
    """The schema of a field with such a type."""
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
def test_a_field_by_its_type(annotation, schema):
    assert member(annotation) == schema
    assert member(annotation | None) == schema


def test_what_is_said_about_a_field_comes_first_and_the_nearest_wins():
    amount = Annotated[int, Meta(ge=0, description="An amount.")]
    schema = member(Annotated[amount, text("How many there are.")])
    assert next(iter(schema)) == "description"
    assert schema["description"] == "How many there are."
    assert schema["minimum"] == 0


def test_a_list_of_objects_is_merged_by_its_key():
    schema = member(Annotated[list[Named], keyed("name", "Things.")])
    assert schema["x-kubernetes-list-type"] == "map"
    assert schema["x-kubernetes-list-map-keys"] == ["name"]
    assert schema["items"]["required"] == ["name"]


@pytest.mark.parametrize("default", [0, "", False, [], {}])
def test_a_default_is_filled_in_even_if_it_is_empty(default):
    kind = {list: list[str], dict: dict[str, str]}.get(type(default), type(default))
    assert member(kind, default=default)["default"] == default


def test_unset_stays_unset():
    assert "default" not in member(int | None, default=None)
    assert "required" not in spec_schema(msgspec.defstruct("Only", [("only", int | None, None)]))


def test_what_has_no_default_is_required():
    assert spec_schema(Tree)["required"] == ["isHigh"]


def test_an_object_says_what_it_is_unless_its_field_does():
    schema = spec_schema(Tree)
    assert schema["description"] == "A tree of two lines."
    assert schema["properties"]["redLeaf"]["description"] == "A leaf."
    assert schema["properties"]["firstLeaf"]["description"] == "The first one."


@pytest.mark.parametrize(
    ("given", "effective"),
    [
        ({}, {"size": 1, "colour": "red"}),
        ({"redLeaf": {}}, {"size": 1, "colour": "red"}),
        ({"redLeaf": {"size": 5}}, {"size": 5, "colour": "red"}),
        ({"redLeaf": {"colour": "blue"}}, {"size": 1, "colour": "blue"}),
    ],
)
def test_who_writes_one_member_keeps_the_defaults_of_the_others(given, effective):
    assert filled(given, spec_schema(Tree))["redLeaf"] == effective


def test_an_object_that_may_be_missing_is_not_filled_in():
    assert "lostLeaf" not in filled({"isHigh": True}, spec_schema(Tree))


def test_nothing_is_filled_in_in_a_status():
    assert "default" not in str(status_schema(Tree))
    assert status_schema(Tree)["required"] == ["isHigh"]


def test_what_kubernetes_could_not_check_may_not_be_in_a_spec():
    with pytest.raises(AssertionError, match="no spec may hold"):
        member(float)
