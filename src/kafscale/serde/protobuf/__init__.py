"""Protobuf descriptors, and conversion of messages to and from JSON. Pure."""
