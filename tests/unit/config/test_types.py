"""The types of settings reject invalid values and round-trip valid ones."""

import pytest

from kafscale.config.types import (
    Boolean,
    BrokerId,
    Choice,
    Duration,
    Float,
    Integer,
    OptionalBoolean,
    OptionalInteger,
    Server,
    Size,
    StringList,
    Text,
)


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (Text(), "", "is empty"),
        (Text(), "two\nlines", "has the wrong format"),
        (Text(), "blank at the end ", "has the wrong format"),
        (Text(pattern="[a-z]+", optional=True), "A", "has the wrong format"),
        (Choice(("json", "text")), "xml", "is not one of them"),
        (Boolean(), "maybe", "is neither true nor false"),
        (Boolean(), "", "is neither true nor false"),
        (OptionalBoolean(), "maybe", "is neither true nor false"),
        (Server(), "http://minio:99999", "has an invalid host or port"),
        (Server(), "http://10.0.0.999/bucket", "has an invalid host or port"),
        (Server(), "etcd:client", "has an invalid host or port"),
        (Integer(1, 10), "ten", "is not a whole number"),
        (Integer(1, 10), "1.5", "is not a whole number"),
        (Integer(1, 10), "0", "is below the minimum of 1"),
        (Integer(1, 10), "11", "is above the maximum of 10"),
        (OptionalInteger(Integer(1, 10)), "11", "is above the maximum of 10"),
        (BrokerId(), "broker-", "is not a whole number"),
        (BrokerId(), "broker-99999999999", "is above the maximum of 2147483647"),
        (BrokerId(), "-2", "is below the minimum of 0"),
        (Float(), "half", "is not a number"),
        (Float(), "nan", "is not a number"),
        (Float(), "1.01", "is above the maximum of 1"),
        (Size(1024, 2048), "1023", "is below the minimum of 1Ki"),
        (Size(1024, 2048), "2049", "is above the maximum of 2Ki"),
        (Duration(100, 60_000), "99", "is below the minimum of 100ms"),
        (Duration(1, 60, unit="s"), "2m", "is above the maximum of 1m"),
        (Duration(1, 60, unit="s"), "1500ms", "is not a whole number of seconds"),
        (Duration(1, 60, unit_in_name=False), "30", "has no unit"),
        (StringList(Text(pattern="[a-z]+")), "a,,b", "has an entry that is empty"),
        (StringList(Text(pattern="[a-z]+")), "a,B", "has an entry that has the wrong format"),
        (StringList(Text(), required=True), " ", "is empty"),
    ],
)
def test_invalid_value_is_rejected_with_a_reason(kind, text, reason):
    with pytest.raises(ValueError, match=f"^{reason}$"):
        kind.read(text)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Text(), "p@ss word", "p@ss word"),
        (Text(optional=True), "", ""),
        (Choice(("json", "text")), " JSON ", "json"),
        (Boolean(), "True", True),
        (Boolean(), "yes", True),
        (Boolean(), "1", True),
        (Boolean(), "no", False),
        (Boolean(), "0", False),
        (OptionalBoolean(), "", None),
        (OptionalBoolean(), "no", False),
        (Server(), "https://[::1]:9000/path", "https://[::1]:9000/path"),
        (Server(optional=True), "", ""),
        (Integer(-5, 10), " -5 ", -5),
        (OptionalInteger(Integer(0, 10)), "", None),
        (OptionalInteger(Integer(0, 10)), "0", 0),
        (BrokerId(), "2", 2),
        (BrokerId(), "broker-2", 2),
        (BrokerId(), "kafscale-broker-0", 0),
        (BrokerId(), "", None),
        (Float(), "0.2", 0.2),
        (Size(0, 10**9), "1Mi", 1024**2),
        (Duration(1, 10**6), "500", 500),
        (Duration(1, 10**6), "1s", 1000),
        (Duration(1, 3600, unit="s"), "2m", 120),
        (Duration(1, 10**6, unit_in_name=False), "30s", 30_000),
        (StringList(Text()), "a, b", ("a", "b")),
        (StringList(Text()), "", ()),
    ],
)
def test_valid_value_round_trips(kind, text, value):
    assert kind.read(text) == value
    assert kind.read(kind.show(value)) == value
