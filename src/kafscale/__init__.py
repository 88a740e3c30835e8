"""Kafscale: a Kafka-compatible streaming platform with stateless brokers."""

from importlib.metadata import version

__version__ = version("kafscale")
