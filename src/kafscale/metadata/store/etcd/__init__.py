"""The metadata store on etcd v3, shared by the brokers of a cluster.

`store` implements the operations, `watch` the watch. `client` sends requests and decides what may
be retried; `members` selects a member, `member` is one of them, `channel` its gRPC channel, and
`session` authenticates. `errors` classifies etcd's errors, `protobuf` converts messages, `methods`
lists the RPCs.
"""

from kafscale.metadata.store.etcd.store import EtcdStore

__all__ = ["EtcdStore"]
