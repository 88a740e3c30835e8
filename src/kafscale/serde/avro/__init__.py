"""Avro: schemas, and values as JSON."""
