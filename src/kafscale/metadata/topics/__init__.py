"""Topics: their store, names and topic configurations."""
