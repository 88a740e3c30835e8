"""Which topics of a fetch the client may not read."""

from collections.abc import Iterable

from kafscale.broker.fetch_sessions.cache import CachedPartition
from kafscale.broker.requests.context import RequestContext
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.fetch import FetchRequest

NONE_DENIED: frozenset[str | bytes] = frozenset()


def denied_topics(
    context: RequestContext, request: FetchRequest, partitions: Iterable[CachedPartition]
) -> frozenset[str | bytes]:
    """The topics that the client may not read, by the name or id that it has sent."""
    topics = {partition.key[0] for partition in partitions}
    if _is_replica(request):
        may_replicate = context.is_authorized(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
        return NONE_DENIED if may_replicate else frozenset(topics)
    topic_store = context.broker.topic_store
    denied = set()
    for topic in topics:
        if isinstance(topic, str):
            name = topic
        elif found := topic_store.find_by_id(topic):
            name = found.name
        else:
            continue  # The topic does not exist; there is nothing to protect.
        if not context.is_authorized(Operation.READ, ResourceType.TOPIC, name):
            denied.add(topic)
    return frozenset(denied)


def _is_replica(request: FetchRequest) -> bool:
    state = request.replica_state
    return request.replica_id >= 0 or (state is not None and state.replica_id >= 0)
