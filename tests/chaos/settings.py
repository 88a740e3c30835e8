"""Broker settings for rounds: small limits and intervals, so that rare events are frequent."""

SETTINGS = {
    "segment_bytes": "131072",
    "storage_max_segment_age_ms": "5000",
    "storage_retention_check_interval_ms": "500",
    "storage_wal_puts_per_second": "100",
    "compaction_interval_ms": "1000",
    "s3_health_window_sec": "4",
    "auto_create_topics": "false",
    "group_initial_rebalance_delay_ms": "100",
    "log_level": "info",
}
