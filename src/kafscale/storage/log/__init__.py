"""The log of one partition: segments, tail and offsets."""
