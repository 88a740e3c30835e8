"""Prometheus alerts and Grafana dashboards as code. Only the CLI and tests import this package."""
