"""The Kubernetes operator: reconciles `KafscaleCluster` and `KafscaleTopic` resources.

Needs the extra `operator`. From the outside in: `event_sources` receives events from Kubernetes
through kopf; `cluster`, `topics` and `etcd` plan and act; `manifests` are pure functions from the
desired state to manifests; `spec` defines the resources; only `kube` talks to the API server.
"""
