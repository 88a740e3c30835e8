"""Avro schemas, and conversion of values to and from JSON. Pure."""
