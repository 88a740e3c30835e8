"""The `MetadataStore` protocol and its three implementations: etcd, SQLite, memory."""
