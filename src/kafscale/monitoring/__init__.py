"""Alerts and dashboards as code. Only the CLI and tests import this package."""
