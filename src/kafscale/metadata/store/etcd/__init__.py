"""The metadata store on etcd v3, shared by the brokers of a cluster.

`store` implements the operations, `watch` the watch. `client` authenticates, sends requests and
decides what may be retried; `members` selects a member, and `member` is one of them, with its gRPC
channel. `errors` classifies etcd's errors, `protobuf` lists the RPCs and converts messages.
"""

from kafscale.metadata.store.etcd.store import EtcdStore

__all__ = ["EtcdStore"]
