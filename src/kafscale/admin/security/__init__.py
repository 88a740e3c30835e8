"""ACLs, users and quotas."""
