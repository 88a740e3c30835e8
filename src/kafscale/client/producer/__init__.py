"""A producer that batches and sends records."""
