"""Objects as files on local disk."""
