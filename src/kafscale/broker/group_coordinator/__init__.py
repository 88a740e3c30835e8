"""The shell round `groups`: who waits, what is due, what is written down."""
