"""The wire: every Kafka message that we speak, frames, headers and error codes. Pure."""
