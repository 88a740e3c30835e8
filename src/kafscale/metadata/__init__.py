"""Cluster metadata (topics, brokers, groups, ACLs) in a revisioned key-value store.

* `store` defines `MetadataStore`, in etcd's terms, and implements it with etcd (clusters), SQLite
  (one embedded broker) and memory (tests).
* `schema` defines keys, values and their protobuf encoding.
* `topics`, `cluster` and `access` read and change metadata, with caches that watches keep current.

Only this package accesses the metadata store's backends.
"""
