"""ACL evaluation."""
