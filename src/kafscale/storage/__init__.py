"""Where records live: the formats of objects, the stores that keep them, and the logs above."""
