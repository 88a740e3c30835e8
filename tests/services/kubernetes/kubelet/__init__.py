"""Nodes without containers: what binds pods to nodes, runs them as processes, and connects them.

`kubelet` is what tests use, and `agent` puts the rest together. Pods begin in `scheduler` and live
in `pod`, which has a `sandbox` with an address of the `network`, and some `container`s. What runs
in there is a `program`, started by `shim` in a room that `order` describes, from `images`,
`environment`, `volumes` and `filesystem`. `name_server` and `service_proxy` let pods find and reach
one another. Whatever the API server has is seen through a `mirror`.
"""
