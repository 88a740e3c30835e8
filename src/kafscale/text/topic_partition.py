"""A topic partition, as a key of mappings and in signatures."""

TopicPartition = tuple[str, int]
"""A topic name and a partition index."""
