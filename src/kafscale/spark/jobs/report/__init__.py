"""The report job: inventory and cost of a bucket."""
