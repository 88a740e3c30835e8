"""Serialization of values with schemas: Avro and Protobuf, to and from JSON; schema registries.

    avro        Avro schemas; reads and writes values as JSON. Pure
    protobuf    Protobuf descriptors; reads and writes messages as JSON. Pure
    registry    the client of a schema registry, its wire format, and the Protobuf compiler

`kafscale.spark.values` decodes values with the same schemas into columns.
"""
