"""A Kafka client of our own, for commands and jobs: small, plain, in terms of whole batches."""
