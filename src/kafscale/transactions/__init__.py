"""Transactions as state machines: pure data and functions, no I/O, no clock."""
