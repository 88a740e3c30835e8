"""What the cluster knows: topics, states of partitions, counters, in a store with revisions.

`store` is the one interface to it, in etcd's vocabulary; `etcd` (cluster), `sqlite` (embedded) and
`memory` (tests) implement it, unaware of each other. `keys` and the encodings say how
things are kept there, `model` what they are; `catalog` is how brokers see and change topics. Only
this room talks to the stores.
"""
