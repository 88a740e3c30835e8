"""What several handlers use."""
