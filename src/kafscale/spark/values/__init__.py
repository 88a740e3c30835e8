"""Decoded values: from the bytes of records to the columns of a table.

    spec            what values are; `create_decoder` it
    base            what decoders give: columns, which rows are good, why the others are bad
    json_values     JSON; `json_columns` is fast, `json_rows` careful, `json_inference` guesses
    avro_values     Avro; `avro_types` maps its types
    protobuf_values Protobuf; `protobuf_types` maps its types
    ddl             schemas as text
    evolution       how the schema of a table follows

Where schemas come from, the room `schemas` knows.
Needs no Spark: tasks hand Arrow arrays in, and write what comes out.
"""

from kafscale.serde.registry.client import RegistryAccess
from kafscale.spark.values.base import BadRow, Decoded, ValueDecoder
from kafscale.spark.values.evolution import conform, extend, merge
from kafscale.spark.values.json_inference import infer, observe, settle, unify
from kafscale.spark.values.spec import ValueSpec, create_decoder, pin_schema

__all__ = [
    "BadRow",
    "Decoded",
    "RegistryAccess",
    "ValueDecoder",
    "ValueSpec",
    "conform",
    "create_decoder",
    "extend",
    "infer",
    "merge",
    "observe",
    "pin_schema",
    "settle",
    "unify",
]
