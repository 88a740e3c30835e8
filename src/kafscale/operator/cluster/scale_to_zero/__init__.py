"""Stop the brokers of an idle cluster, and start them when a client connects."""
