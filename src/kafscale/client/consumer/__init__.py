"""A consumer: partition reader and group member."""
