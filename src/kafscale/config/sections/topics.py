"""Settings of topics: automatic creation and compression."""

from dataclasses import dataclass

from kafscale.config.schema import setting
from kafscale.config.types import Boolean, Choice, Integer


@dataclass(frozen=True, kw_only=True)
class Topics:
    """Automatic creation of topics."""

    auto_create: bool = setting(True, Boolean(), variables=("KAFSCALE_AUTO_CREATE_TOPICS",))
    """Whether a topic is created when a client first uses it, if the client allows it. True, as in
    Kafka, so that a first test needs no preparation."""

    auto_create_partitions: int = setting(
        1, Integer(1, 10_000), variables=("KAFSCALE_AUTO_CREATE_PARTITIONS",)
    )
    """The number of partitions of such a topic. 1, as in Kafka: all records stay in one order."""


@dataclass(frozen=True, kw_only=True)
class Compression:
    """Compression of segments."""

    type: str = setting("snappy", Choice(("none", "gzip", "snappy", "lz4", "zstd")))
    """The codec for batches that arrive uncompressed, applied when a segment is written; compressed
    batches are stored as they are. `snappy` saves much space for little CPU time."""
