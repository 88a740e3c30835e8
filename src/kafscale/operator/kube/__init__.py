"""Access to the Kubernetes API server. No other package of Kafscale talks to it."""
