"""Brokers, assignments, epochs and group shards, with watch caches over them."""
