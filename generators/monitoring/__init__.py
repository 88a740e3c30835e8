"""Prometheus alerts and Grafana dashboards, written in Python."""
