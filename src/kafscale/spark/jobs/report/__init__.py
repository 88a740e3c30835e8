"""The report job: usage, growth and cost of topics."""
