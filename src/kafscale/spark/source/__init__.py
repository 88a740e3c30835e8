"""The `kafscale` data source: batch, stream, options, offsets."""
