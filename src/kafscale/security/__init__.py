"""Who somebody is, and what they may do: TLS, SASL, rules and quotas. Bytes in, bytes out."""
