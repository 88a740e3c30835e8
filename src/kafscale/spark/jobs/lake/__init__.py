"""The lake job: topics to Iceberg, Delta or Parquet tables."""
