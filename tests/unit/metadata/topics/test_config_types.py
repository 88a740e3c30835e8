"""Config values are parsed as in Kafka."""

import pytest

from kafscale.metadata.topics.config_types import (
    Boolean,
    ConfigType,
    Enum,
    Integer,
    Ratio,
    StringList,
    split_list,
)

NUMBER = Integer(-1)
SMALL = Integer(1, 10)
RATIO = Ratio()
FLAG = Boolean()
WORD = Enum(("some", "none"))
WORDS = StringList()


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (NUMBER, "-1", "-1"),
        (NUMBER, " 007 ", "7"),
        (NUMBER, "+5", "5"),
        (NUMBER, str(2**63 - 1), str(2**63 - 1)),
        (SMALL, "10", "10"),
        (RATIO, "0.5", "0.5"),
        (RATIO, " 1 ", "1"),
        (FLAG, "True", "true"),
        (FLAG, " false", "false"),
        (WORD, " some ", "some"),
        (WORDS, " a, b ,,c", "a,b,c"),
        (WORDS, "", ""),
    ],
)
def test_valid_values_are_normalized(kind, text, value):
    assert kind.parse(text) == value
    assert kind.parse(value) == value


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (NUMBER, "", "Not a number of type LONG"),
        (NUMBER, "1_000", "Not a number"),
        (NUMBER, "1.5", "Not a number"),
        (NUMBER, "1e3", "Not a number"),
        (NUMBER, "\N{ARABIC-INDIC DIGIT ONE}", "Not a number"),
        (NUMBER, "-2", "at least -1"),
        (NUMBER, str(2**63), "at most 9223372036854775807"),
        (SMALL, "x", "Not a number of type INT"),
        (SMALL, "0", "at least 1"),
        (SMALL, "11", "at most 10"),
        (RATIO, "1.1", "from 0 to 1"),
        (RATIO, "nan", "from 0 to 1"),
        (RATIO, "half", "from 0 to 1"),
        (FLAG, "yes", "either true or false"),
        (WORD, "any", "one of: some, none"),
    ],
)
def test_invalid_values_are_rejected_with_the_expected_form(kind, text, reason):
    with pytest.raises(ValueError, match=reason):
        kind.parse(text)


def test_integer_type_depends_on_its_bounds():
    assert SMALL.type is ConfigType.INT
    assert NUMBER.type is ConfigType.LONG


def test_list_has_no_empty_entries():
    assert split_list(" , a,") == ["a"]
