"""Transactions: list, describe and abort them, and find hanging ones."""
