"""Dynamic configs of groups and brokers: their records and their store."""
