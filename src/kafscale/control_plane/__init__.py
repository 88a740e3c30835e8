"""The control plane: gRPC between brokers, operator and tools."""
