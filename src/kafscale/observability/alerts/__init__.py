"""Alerts for Prometheus, written in code: one module for each room, all of them in `GROUPS`."""

from kafscale.observability.alerts.brokers import BROKERS
from kafscale.observability.alerts.clients import CLIENTS
from kafscale.observability.alerts.etcd import ETCD
from kafscale.observability.alerts.operator import OPERATOR
from kafscale.observability.alerts.pipeline import PIPELINE
from kafscale.observability.alerts.storage import STORAGE

GROUPS = (BROKERS, STORAGE, CLIENTS, ETCD, OPERATOR, PIPELINE)

__all__ = ["GROUPS"]
