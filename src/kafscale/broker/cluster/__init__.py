"""One broker of a cluster: registration, sessions, ownership, and the controller's duties."""
