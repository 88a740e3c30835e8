"""Authentication, authorization, quotas and the audit log of requests."""
