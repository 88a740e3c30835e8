"""Protobuf modules, written by `make generate` from proto/metadata/; not for reading."""
