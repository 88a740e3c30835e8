"""Subscriptions of client metrics (KIP-714)."""
