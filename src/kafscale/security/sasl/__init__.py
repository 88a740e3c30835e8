"""SASL mechanisms, server and client side. Bytes in, bytes out."""
