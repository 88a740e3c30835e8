"""From sockets to frames: listeners, acceptor, connections."""
