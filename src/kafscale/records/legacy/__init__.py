"""Message sets of magic 0 and 1, and their conversion."""
