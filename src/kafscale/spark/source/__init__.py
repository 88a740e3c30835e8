"""The `kafscale` data source: batches, streams, options."""
