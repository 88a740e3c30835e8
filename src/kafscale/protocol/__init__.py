"""Kafka's wire protocol: messages, frames, headers and error codes. Pure."""
