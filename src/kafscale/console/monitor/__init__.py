"""What is watched of a cluster while the console runs: looks, and what is remembered of them."""
