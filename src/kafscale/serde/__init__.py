"""Schemas of values: between bytes and JSON, and where schemas come from.

    frame             how bytes name a schema of a registry
    registry          asks one; `schema_cache` remembers what was made of the answers
    registered        what a registry gives, with all that it refers to, ready to be parsed
    avro_schema       parses; `avro_reading` and `avro_writing` are the two ways, `avro_logical`
                      what dates, decimals and their like are in JSON
    protobuf_files    messages of descriptors; `protobuf_source` compiles text
    protobuf_json     the two ways of a message

All but `registry` and `protobuf_source` are pure. Spark reads the same schemas into columns.
"""
