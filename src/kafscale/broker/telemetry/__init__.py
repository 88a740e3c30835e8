"""Client metrics (KIP-714): clients ask for subscriptions, and push metrics."""
