"""TLS contexts, names in certificates and a development CA."""
