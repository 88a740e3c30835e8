"""`Services`: the components that handlers may use, in one value built by `bootstrap`."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kafscale.broker.cluster.registration import Registration
from kafscale.broker.configs.live_settings import LiveSettings
from kafscale.broker.fetch_sessions.cache import FetchSessionCache
from kafscale.broker.group_coordinator.commit_limits import CommitLimits
from kafscale.broker.group_coordinator.coordinator import Coordinator
from kafscale.broker.health import Health
from kafscale.broker.producer_ids import ProducerIds
from kafscale.broker.requests.response_budget import ResponseBudget
from kafscale.broker.security.audit import AuditLog
from kafscale.broker.security.authorization import RequestAuthorizer
from kafscale.broker.security.quotas import ClientQuotas
from kafscale.broker.shards.shards import Shards
from kafscale.broker.telemetry.receiver import TelemetryReceiver
from kafscale.broker.topics import Topics
from kafscale.broker.transaction_coordinator.transactions import Transactions
from kafscale.config import Config
from kafscale.metadata.access.store import AccessStore
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.configs.store import ConfigStore
from kafscale.metadata.topics.config_validation import TopicDefaults
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.metrics.broker import Metrics
from kafscale.storage.engine import StorageEngine


@dataclass(frozen=True, kw_only=True)
class Services:
    """The components that serve requests."""

    settings: LiveSettings
    node_id: int
    cluster_id: str
    topic_store: TopicStore
    cluster: ClusterCache
    registration: Registration
    topics: Topics
    storage: StorageEngine
    fetch_sessions: FetchSessionCache
    producer_ids: ProducerIds
    shards: Shards
    groups: Coordinator
    transactions: Transactions
    commit_limits: CommitLimits
    access_store: AccessStore
    """The stored ACLs, credentials and quotas."""
    config_store: ConfigStore
    """The stored configs of groups and brokers."""
    telemetry: TelemetryReceiver
    audit: AuditLog
    quotas: ClientQuotas
    metrics: Metrics
    health: Health
    responses: ResponseBudget
    clock: Callable[[], int]
    authorizer: RequestAuthorizer | None = None
    """None if authorization is disabled."""
    slice_turns: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the request whose slice of a long list is being served."""
    timer: Callable[[], float] = time.monotonic
    """Returns seconds, for durations."""

    @property
    def config(self) -> Config:
        """The current settings."""
        return self.settings.config

    @property
    def topic_defaults(self) -> TopicDefaults:
        return self.settings.topic_defaults
