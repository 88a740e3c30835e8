"""The write-ahead log: from an appended batch to a durable object."""
