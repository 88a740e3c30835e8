"""Kafscale: a Kafka-compatible streaming platform whose brokers keep nothing."""

from importlib.metadata import version

__version__ = version("kafscale")
