"""Kubernetes without containers: a real control plane, and what tests need around it.

`control_plane` runs the API server and the controllers, `metrics_api` is what autoscalers look at,
`helm` is Helm, and `namespaces` is the room, cut off from the machine, in which it all happens.
"""
