"""The settings of single components, from those of the broker."""

from kafscale.broker.group_coordinator.group_runtime import OffsetSettings
from kafscale.broker.stores import is_remote
from kafscale.broker.transaction_coordinator.coordinator import TransactionSettings
from kafscale.config import Config
from kafscale.groups.group import GroupSettings
from kafscale.storage.compaction.scheduler import CompactionSettings
from kafscale.storage.engine import EngineSettings
from kafscale.storage.read.read_ahead import ReadAheadLimits
from kafscale.storage.segments.roll_scheduler import RollLimits
from kafscale.storage.wal.buffer import SealPolicy
from kafscale.text.units import MINUTE_MS


def engine_settings(config: Config) -> EngineSettings:
    """The storage engine's part of the settings."""
    storage, compaction = config.storage, config.compaction
    remote = is_remote(config)
    return EngineSettings(
        seal_policy=SealPolicy(
            flush_bytes=min(storage.segment_buffer_bytes, storage.segment_bytes),
            flush_messages=storage.flush_messages,
            flush_interval_ms=storage.flush_interval_ms,
            uploads_max=storage.wal_uploads_max,
            # A local disk does one write at a time: batches that arrive meanwhile share the next.
            idle_uploads_max=storage.wal_uploads_max if remote else 1,
            quiet_bytes=storage.wal_idle_flush_bytes if remote else None,
        ),
        puts_per_second=storage.wal_puts_per_second if remote else None,
        puts_burst=storage.wal_puts_burst,
        buffer_bytes_max=storage.buffer_bytes_max,
        limits=RollLimits(
            tail_bytes_max=storage.tail_bytes_max,
            wal_bytes_max=storage.wal_bytes_max,
            segment_age_ms_max=storage.segment_age_ms_max,
            borrowed_bytes_max=config.cache.segment_cache_bytes // 4,
        ),
        blocks_bytes_max=config.cache.segment_cache_bytes,
        indexes_bytes_max=config.cache.index_cache_bytes,
        read_ahead=ReadAheadLimits(config.cache.read_ahead_segments, config.cache.read_ahead_bytes),
        index_interval_bytes=storage.index_interval_bytes,
        retention_check_interval_ms=storage.retention_check_interval_ms,
        producer_expiration_ms=storage.producer_id_expiration_ms,
        compaction=CompactionSettings(
            interval_ms=compaction.interval_ms,
            memory_bytes_max=compaction.memory_bytes_max,
            bytes_per_second=compaction.bytes_per_second,
        )
        if compaction.enabled
        else None,
        # Files are deleted one after the other; a bucket does not order concurrent deletions.
        trim_count_max=1 if remote else 64,
    )


def group_settings(config: Config) -> GroupSettings:
    """The coordinator's part of the settings."""
    group = config.group
    return GroupSettings(
        initial_rebalance_delay_ms=group.initial_rebalance_delay_ms,
        session_timeout_ms_min=group.session_timeout_ms_min,
        session_timeout_ms_max=group.session_timeout_ms_max,
        size_max=group.size_max,
        consumer_session_timeout_ms=group.consumer_session_timeout_ms,
        consumer_heartbeat_interval_ms=group.consumer_heartbeat_interval_ms,
        consumer_size_max=group.consumer_size_max,
        consumer_assignors=group.consumer_assignors,
        upgrades=group.consumer_migration_policy in {"bidirectional", "upgrade"},
        downgrades=group.consumer_migration_policy in {"bidirectional", "downgrade"},
    )


def offset_settings(config: Config) -> OffsetSettings:
    offsets = config.offsets
    return OffsetSettings(
        retention_ms=offsets.retention_minutes * MINUTE_MS,
        check_interval_ms=offsets.retention_check_interval_ms,
        group_metadata_bytes_max=offsets.group_metadata_bytes_max,
    )


def transaction_settings(config: Config) -> TransactionSettings:
    transaction = config.transaction
    return TransactionSettings(
        timeout_ms_max=transaction.timeout_ms_max,
        id_expiration_ms=transaction.id_expiration_ms,
        expiration_interval_ms=transaction.id_expiration_interval_ms,
        ids_max=transaction.ids_max,
    )
