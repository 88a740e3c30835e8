"""The merge job: rewrite small segments as few large ones."""
