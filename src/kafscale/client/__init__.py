"""A small asyncio Kafka client for commands and jobs; it sends and fetches whole batches."""
