"""Protobuf modules, written by `make generate` from proto/control/; not for reading."""
