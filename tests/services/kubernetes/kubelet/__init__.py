"""A kubelet without containers: schedules pods, runs them as processes, and connects them.

`kubelet` is the API of tests, and `agent` combines the parts. Pods start in `scheduler` and run in
`pod`, which has a `sandbox` with an address of the `network`, and `container`s. Each runs a
`program`, started by `shim` in namespaces that a `container_spec` describes, built from `images`,
`environment`, `volumes` and `filesystem`. `name_server` and `service_proxy` let pods find and reach
each other. Objects of the API server are read from a `watch_cache`.
"""
