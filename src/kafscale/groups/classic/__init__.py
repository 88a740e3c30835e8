"""The classic protocol: members join, a leader among them assigns, and everybody syncs."""

from kafscale.groups.classic.group import ClassicGroup
from kafscale.groups.classic.state import State

__all__ = ["ClassicGroup", "State"]
