"""Protobuf: descriptors, JSON and the compiler."""
