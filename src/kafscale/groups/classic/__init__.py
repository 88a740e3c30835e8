"""The classic protocol: members join, a leader among them assigns, and all members sync."""

from kafscale.groups.classic.group import ClassicGroup
from kafscale.groups.classic.group_state import State

__all__ = ["ClassicGroup", "State"]
