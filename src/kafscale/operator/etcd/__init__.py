"""The metadata store of a cluster: found or run, kept healthy, backed up and restored."""
