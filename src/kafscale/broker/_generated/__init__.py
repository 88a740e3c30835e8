"""Protobuf modules, written by `make generate` from proto/telemetry/; not for reading."""
