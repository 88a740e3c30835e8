"""What the metadata store holds: keys, values and their protobuf encoding."""
