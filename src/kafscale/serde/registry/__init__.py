"""Client of a Confluent-compatible schema registry."""
