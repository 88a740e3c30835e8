"""Reconciles topics with their `KafscaleTopic` resources; changes made elsewhere are respected."""
