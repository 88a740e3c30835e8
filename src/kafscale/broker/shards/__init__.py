"""The coordinator shards of a broker: sessions, the shared writer, opening and releasing."""
