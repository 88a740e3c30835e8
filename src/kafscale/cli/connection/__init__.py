"""How a command reaches a cluster."""
