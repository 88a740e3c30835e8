"""What the settings of a broker mean for its storage."""

from kafscale.broker.stores import is_remote
from kafscale.config import Config
from kafscale.storage.engine import EngineSettings
from kafscale.storage.segments.roll_scheduler import RollLimits
from kafscale.storage.wal.buffer.seal_policy import SealPolicy


def engine_settings(config: Config) -> EngineSettings:
    storage = config.storage
    remote = is_remote(config)
    return EngineSettings(
        seal_policy=SealPolicy(
            flush_bytes=min(storage.segment_buffer_bytes, storage.segment_bytes),
            flush_messages=storage.flush_messages,
            flush_interval_ms=storage.flush_interval_ms,
            uploads_max=storage.wal_uploads_max,
            # A local disk is asked one thing at a time: what comes meanwhile travels together.
            idle_uploads_max=storage.wal_uploads_max if remote else 1,
            quiet_bytes=storage.wal_quiet_bytes if remote else None,
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
        read_ahead=config.cache.read_ahead_segments,
        index_interval_bytes=storage.index_interval_bytes,
        retention_check_interval_ms=storage.retention_check_interval_ms,
        producer_expiration_ms=storage.producer_id_expiration_ms,
        # Files go one after the other; of a bucket nobody knows which of many goes first.
        trim_count_max=1 if remote else 64,
    )
