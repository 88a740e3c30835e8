"""Binary formats and object keys. Pure, and shared with Spark."""
