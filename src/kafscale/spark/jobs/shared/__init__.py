"""Code that several jobs share."""
