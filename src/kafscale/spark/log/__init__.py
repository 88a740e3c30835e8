"""Reads the bucket on the driver: listing, and lookup of offsets by timestamp."""
