"""The handlers of the console's API, one module per resource."""
