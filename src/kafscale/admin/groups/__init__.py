"""Consumer groups: listing, describing, offsets and resets."""
