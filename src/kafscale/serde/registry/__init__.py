"""The client of a Confluent-compatible schema registry."""
