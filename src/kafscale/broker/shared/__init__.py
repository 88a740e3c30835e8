"""Code that several handlers share."""
