"""Polls the cluster while the console runs, and keeps the recent history."""
