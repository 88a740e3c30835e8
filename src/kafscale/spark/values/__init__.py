"""Decodes the values of records into the columns of a table.

    spec                the format and schema of values; creates decoders
    base                the result of decoders: columns, valid rows, and reasons for invalid ones
    json_decoder        JSON; `json_columns` is the fast reader, `json_rows` the exact one
    json_inference      infers the schema of JSON values
    avro_decoder        Avro
    protobuf_decoder    Protobuf
    ddl                 schemas as text
    evolution           changes of the schema of a table

`kafscale.serde` provides the schemas. Needs no Spark: the input and output are Arrow arrays.
"""

from kafscale.serde.registry.client import RegistryAccess
from kafscale.spark.values.base import BadRow, Decoded, ValueDecoder
from kafscale.spark.values.evolution import conform, extend
from kafscale.spark.values.json_inference import finalize, infer, observe
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
    "finalize",
    "infer",
    "observe",
    "pin_schema",
]
