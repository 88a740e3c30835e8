"""Topics: listing, describing, configurations, usage and segments."""
