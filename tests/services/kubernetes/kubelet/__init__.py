"""Nodes without containers: what binds pods to nodes, runs them as processes, and connects them.

`kubelet` puts it together. Pods begin in `scheduler`, live in `pod`, which has a `sandbox` with an
address of the `network` and some `container`s, whose world is made of `images`, `environment`,
`volumes` and `filesystem`, entered by `shim`. `name_server` and `service_proxy` let them find and
reach one another. Whatever the API server has is seen through a `mirror`.
"""
