"""The cluster: brokers, health, cost, lag and metrics."""
