"""The `kafscale` command: parses options, reads the environment, and prints results."""
