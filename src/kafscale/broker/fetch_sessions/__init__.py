"""Incremental fetch sessions (KIP-227). Pure."""
