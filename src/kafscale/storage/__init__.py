"""Records in an object store: object formats, stores, and the partition logs built on them."""
