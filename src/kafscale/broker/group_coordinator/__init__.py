"""The group coordinator: runs the state machines of `groups` with timers, replies and storage."""
