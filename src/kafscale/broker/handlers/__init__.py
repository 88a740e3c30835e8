"""The handlers: one module per API, named like its message."""
