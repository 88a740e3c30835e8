"""The metadata store on etcd v3: what the brokers of a cluster share.

`store` is the verbs, `watch` the one that lasts. `client` sends requests, and decides what may be
sent twice; `members` is who can be asked, `member` one of them, `channel` the way to it, `session`
who we are there. `failure` knows what etcd's errors mean, `translation` and `methods` its language.
"""

from kafscale.metadata.store.etcd.store import EtcdStore

__all__ = ["EtcdStore"]
