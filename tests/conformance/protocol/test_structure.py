"""Message declarations are equal to Kafka's own definitions, field by field.

Bytes do not show everything: a tagged field with its default value is not written. So the
structures are compared as well: type, order, nullability, tag and default of each field, in each
version that Kafka still accepts. Older versions, and the few messages without a definition in
kafka-python, are compared by their bytes and with kio's classes.
"""

import dataclasses
import re
import typing

from conformance.protocol import kafka_definitions
from conformance.protocol.cases import CASES, Case
from conformance.protocol.reference_codecs import kio_entity
from kafscale.protocol.api import NEVER
from kafscale.protocol.apis import APIS
from services.for_each import for_each

DEFINED = [c for c in CASES if kafka_definitions.defines(c.message.__name__, c.version)]


@for_each(DEFINED)
def test_message_structure_equals_kafka_definition(case: Case):
    ours = kafka_definitions.our_shape(case.message, case.version)
    assert ours == kafka_definitions.kafka_shape(case.message.__name__, case.version)


@for_each(CASES)
def test_message_structure_equals_kio_class(case: Case):
    if (entity := kio_entity(case)) is not None:
        shape = kafka_definitions.our_shape(case.message, case.version)
        assert _types(shape) == _kio_types(entity)


@for_each(APIS, lambda api: api.name)
def test_api_table_equals_kafka(api):
    entity = kio_entity(Case(api, "request", api.version_max))
    assert entity is not None
    assert entity.__api_key__ == api.key
    for side in (api.request, api.response):
        name = side.__name__
        assert re.fullmatch(f"{api.name}(Request|Response)", name)
        if kafka_definitions.exists(name):
            assert kafka_definitions.flexible_since(name) == api.flexible_since
    for version in api.versions:
        entity = kio_entity(Case(api, "request", version))
        if entity is not None:
            assert entity.__flexible__ == api.is_flexible(version)


NEWER_THAN_KAFKA_4_1 = {"WriteTxnMarkers": 2}
"""Versions of kafka-python's definitions that Apache Kafka 4.1, the reference, does not serve."""


def test_newest_stable_version_of_every_api_is_supported():
    for api in APIS:
        if kafka_definitions.exists(api.request.__name__):
            newest = kafka_definitions.newest_stable_version(api.request.__name__)
            newest -= newest == NEWER_THAN_KAFKA_4_1.get(api.name)
            assert (api.name, api.version_max) == (api.name, newest)


def test_most_messages_have_a_kafka_definition():
    compared = {str(case) for case in CASES if case in DEFINED or kio_entity(case) is not None}
    old = sorted({case.api.name for case in CASES if str(case) not in compared})
    assert old == [
        "CreateAcls",
        "CreateTopics",
        "DeleteAcls",
        "DeleteTopics",
        "DescribeAcls",
        "DescribeConfigs",
        "DescribeLogDirs",
        "Fetch",
        "ListOffsets",
        "OffsetCommit",
        "OffsetFetch",
        "OffsetForLeaderEpoch",
        "Produce",
    ]
    assert NEVER not in [case.version for case in CASES]


def _types(shapes):
    return [(shape.type, shape.tag, _types(shape.fields)) for shape in shapes]


def _kio_types(entity):
    """kio's types, with those that it adds of its own led back to what is on the wire."""
    hints = typing.get_type_hints(entity)
    types = []
    for field in dataclasses.fields(entity):
        hint = hints[field.name]
        inner = [a for a in typing.get_args(hint) if a is not type(None)]
        if type(None) in typing.get_args(hint):
            hint = inner[0]
        array = typing.get_origin(hint) is tuple
        if array:
            hint = typing.get_args(hint)[0]
        kind = field.metadata.get("kafka_type")
        plain = {
            "timedelta_i32": "int32",
            "timedelta_i64": "int64",
            "datetime_i64": "int64",
            "error_code": "int16",
            None: "struct",
        }.get(kind, kind)
        fields = _kio_types(hint) if kind is None else []
        types.append((("[]" if array else "") + plain, field.metadata.get("tag"), fields))
    return types
