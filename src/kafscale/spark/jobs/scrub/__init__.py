"""The scrub job: verify all objects of a namespace."""
