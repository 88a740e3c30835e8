"""What several jobs use."""
