"""The Kubernetes operator: clusters and topics as resources of Kubernetes, made so and kept so.

Needs the extra `operator`. From the outside in: `handlers` hears from Kubernetes, through kopf;
`cluster`, `topics` and `etcd` decide and act; `resources` are pure functions from what is wanted to
manifests; `spec` is what may be wanted; `kube` alone speaks with the API server.
"""
