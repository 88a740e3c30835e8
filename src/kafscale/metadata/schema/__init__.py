"""Keys and values of the metadata store, and their protobuf encoding."""
