"""The controller: election, assignment plans, fencing, cleanup."""
