"""The control plane: brokers are looked at and directed, over gRPC, by the operator and tools."""
