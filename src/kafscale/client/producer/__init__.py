"""A producer: batches records and sends them."""
