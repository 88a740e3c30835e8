"""Which broker owns what: assignment plans. Pure."""
