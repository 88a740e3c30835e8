"""The rooms that a handler may use, gathered in one value by the composition root."""

from collections.abc import Callable
from dataclasses import dataclass

from kafscale.broker.cluster.registration import Registration
from kafscale.broker.fetch_sessions.cache import FetchSessions
from kafscale.broker.group_coordinator.coordinator import Coordinator
from kafscale.broker.health import Health
from kafscale.broker.producer_ids import ProducerIds
from kafscale.broker.security.audit import Audit
from kafscale.broker.security.authorization import Access
from kafscale.broker.security.quotas import Throttling
from kafscale.broker.topics import Topics
from kafscale.config import Config
from kafscale.metadata.access.store import AclStore
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.topics.catalog import Catalog
from kafscale.metadata.topics.config_validation import TopicDefaults
from kafscale.observability.metrics.broker import Metrics
from kafscale.storage.engine import StorageEngine


@dataclass(frozen=True, kw_only=True)
class Services:
    """What requests are served with."""

    config: Config
    node_id: int
    cluster_id: str
    catalog: Catalog
    cluster: ClusterCache
    registration: Registration
    topics: Topics
    topic_defaults: TopicDefaults
    storage: StorageEngine
    fetch_sessions: FetchSessions
    producer_ids: ProducerIds
    groups: Coordinator
    rules: AclStore
    """Rules, credentials and quotas, as they are kept."""
    audit: Audit
    throttling: Throttling
    metrics: Metrics
    health: Health
    clock: Callable[[], int]
    access: Access | None = None
    """What clients may do; None where everybody may do everything."""
