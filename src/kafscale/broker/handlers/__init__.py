"""The handlers: one a file, named as its message; each turns a request into its answer."""
