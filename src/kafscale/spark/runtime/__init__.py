"""Sessions, Java, Maven packages and Python workers."""
