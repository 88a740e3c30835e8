"""The metadata store of a single node: one SQLite file."""
