"""`kafscale sql`."""
