"""Addresses and TLS files."""
