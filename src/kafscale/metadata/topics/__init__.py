"""Topics: the catalog, its cache, names and topic configurations."""
