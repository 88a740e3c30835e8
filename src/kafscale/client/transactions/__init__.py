"""Transactions: a producer whose records and consumed offsets become visible together."""
