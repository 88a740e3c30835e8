"""One broker among many: its lives, what it owns, and the duties of the one that is controller."""
