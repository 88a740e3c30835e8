"""Authentication, authorization and quotas: TLS, SASL, JWT and ACLs."""
