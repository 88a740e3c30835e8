"""The scrub job: verify every object of a bucket."""
