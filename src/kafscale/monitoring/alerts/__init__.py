"""Prometheus alerts, one module for each rule group; `GROUPS` has all of them."""

from kafscale.monitoring.alerts.brokers import BROKERS
from kafscale.monitoring.alerts.clients import CLIENTS
from kafscale.monitoring.alerts.etcd import ETCD
from kafscale.monitoring.alerts.operator import OPERATOR
from kafscale.monitoring.alerts.pipeline import PIPELINE
from kafscale.monitoring.alerts.storage import STORAGE

GROUPS = (BROKERS, STORAGE, CLIENTS, ETCD, OPERATOR, PIPELINE)

__all__ = ["GROUPS"]
