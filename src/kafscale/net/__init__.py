"""Addresses, TLS files and a TCP relay."""
