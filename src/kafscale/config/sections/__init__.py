"""One module per section of the configuration file."""
