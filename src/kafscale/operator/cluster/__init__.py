"""A cluster: brought to what its resource asks for, step by step, and told about in its status."""
