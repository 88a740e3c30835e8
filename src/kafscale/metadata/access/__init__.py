"""ACLs, SCRAM credentials and quotas in the metadata store."""
