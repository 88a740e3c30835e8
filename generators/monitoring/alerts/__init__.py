"""Prometheus alerts, one module for each rule group; `GROUPS` has all of them."""

from generators.monitoring.alerts.brokers import BROKERS
from generators.monitoring.alerts.clients import CLIENTS
from generators.monitoring.alerts.etcd import ETCD
from generators.monitoring.alerts.operator import OPERATOR
from generators.monitoring.alerts.pipeline import PIPELINE
from generators.monitoring.alerts.storage import STORAGE

GROUPS = (BROKERS, STORAGE, CLIENTS, ETCD, OPERATOR, PIPELINE)

__all__ = ["GROUPS"]
