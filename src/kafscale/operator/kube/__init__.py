"""The API server, and nothing else may: what is asked of it, and how."""
