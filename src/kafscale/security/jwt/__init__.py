"""Verification of JSON Web Tokens."""
