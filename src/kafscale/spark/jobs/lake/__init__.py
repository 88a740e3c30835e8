"""The lake job: write topics to Iceberg, Delta or Parquet tables."""
