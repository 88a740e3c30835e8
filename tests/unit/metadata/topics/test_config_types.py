"""Config values are parsed as in Kafka."""

import pytest

from kafscale.metadata.topics.config_types import (
    Boolean,
    ConfigType,
    Enum,
    Integer,
    Ratio,
    ReplicaList,
    StringList,
    split_list,
)

NUMBER = Integer(-1)
SMALL = Integer(1, 10)
RATIO = Ratio()
FLAG = Boolean()
WORD = Enum(("some", "none"))
WORDS = StringList()
POLICIES = StringList(("some", "none"))
LEVEL = Integer(1, 9, extra=-1)
REPLICAS = ReplicaList("throttled")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (NUMBER, "-1", "-1"),
        (NUMBER, " 007 ", "7"),
        (NUMBER, "+5", "5"),
        (NUMBER, str(2**63 - 1), str(2**63 - 1)),
        (SMALL, "10", "10"),
        (RATIO, "0.5", "0.5"),
        (RATIO, " 1 ", "1.0"),
        (FLAG, "True", "true"),
        (FLAG, " false", "false"),
        (WORD, " some ", "some"),
        (WORDS, " a, b ,,c", "a,b,,c"),
        (POLICIES, "", ""),
        (POLICIES, "some,some", "some,some"),
        (LEVEL, "-1", "-1"),
        (REPLICAS, " * ", "*"),
        (REPLICAS, "0:1, 2:3,", "0:1,2:3,"),
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
        (NUMBER, str(2**63), "Not a number of type LONG"),
        (SMALL, "x", "Not a number of type INT"),
        (SMALL, "0", "at least 1"),
        (SMALL, "11", "no more than 10"),
        (RATIO, "1.1", "no more than 1"),
        (RATIO, "-0.1", "at least 0"),
        (RATIO, "nan", "Not a number of type DOUBLE"),
        (RATIO, "half", "Not a number of type DOUBLE"),
        (LEVEL, "0", "between 1 and 9 or equal to -1"),
        (POLICIES, "some,", "one of: some, none"),
        (REPLICAS, "0:1,*", "throttled must be the literal"),
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
