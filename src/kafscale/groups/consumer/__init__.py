"""The consumer protocol (KIP-848): the coordinator assigns, members reconcile step by step."""

from kafscale.groups.consumer.group import ConsumerGroup

__all__ = ["ConsumerGroup"]
