"""Assignment plans: which broker owns which partitions and shards. Pure."""
