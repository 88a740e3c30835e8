"""The open WAL object and the policy that seals it. Pure."""
