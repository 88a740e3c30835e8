"""Topics that come into being because a client names them, by Metadata or by Produce.

The laws: it counts as a change that the client has made, by its quotas and in the audit log; of
several who name a topic at once, one has created it. Whether it may is asked before.
"""

from kafscale.broker.requests.context import RequestContext


async def create(context: RequestContext, name: str, timeout_ms: int) -> None:
    """Create a topic if there is none; raises `ThrottledError` where that has to wait."""
    broker = context.broker
    partition_count = broker.config.topics.auto_create_partitions
    broker.throttling.mutate(context, partition_count)
    if await broker.topics.create_if_missing(name, partition_count, timeout_ms):
        broker.audit.changed(
            context, "topic created on first use", topic=name, partitions=partition_count
        )
