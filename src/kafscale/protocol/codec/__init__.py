"""Compiles message declarations to encode and decode functions."""
