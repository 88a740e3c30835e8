"""The merge job: replace small segments by large ones."""
