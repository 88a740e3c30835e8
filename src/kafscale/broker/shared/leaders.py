"""Telling clients that came to the wrong broker where the right one is (KIP-951)."""

from collections.abc import Iterable

from kafscale.broker.network.advertised import Node, node
from kafscale.broker.requests.context import RequestContext
from kafscale.metadata.cluster.cluster_cache import NO_BROKER
from kafscale.protocol.error_codes import ErrorCode

MISLED = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
"""The errors of those who believe in another leader."""


def leader_of(
    context: RequestContext, name: str, topic_id: bytes, index: int
) -> tuple[int, int] | None:
    """The leader of a partition and its epoch; None where that is us, or nobody knows."""
    catalog = context.broker.catalog
    topic = catalog.get(name) if name else catalog.by_id.get(topic_id)
    if topic is None:
        return None
    leader_id, leader_epoch = context.broker.cluster.leader(topic.name, index)
    if leader_id in {NO_BROKER, context.broker.node_id}:
        return None
    return leader_id, leader_epoch


def endpoints(context: RequestContext, leader_ids: Iterable[int]) -> list[Node]:
    """Where these brokers are reached."""
    return [found for number in sorted(set(leader_ids)) if (found := node(context, number))]
