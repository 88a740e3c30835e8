"""Drives a consumer group with a clock, in short calls.

An error response is raised, so that tests read like a client: `driver.heartbeat("a", 1)` returns
the response.
"""

from kafscale.errors import KafscaleError
from kafscale.groups.consumer import ConsumerGroup
from kafscale.groups.consumer_protocol import Subscription, decode_assignment, encode_subscription
from kafscale.groups.effects import Rebalanced, Reply, Save
from kafscale.groups.events import (
    ConsumerHeartbeat,
    Heartbeat,
    Join,
    Leave,
    MemberIdentity,
    Sync,
    Tick,
    TopicsChanged,
)
from kafscale.groups.group import GroupSettings
from kafscale.groups.model import TopicInfo

REBALANCE_MS = 60_000
SESSION_MS = 45_000
REPLY_TOKEN = 7
START_MS = 1_000_000


def topic_infos(**counts):
    """Topics by name, with partition counts; their ids are their names as bytes."""
    return {name: TopicInfo(name, name.encode(), count) for name, count in counts.items()}


def partitions(**numbers):
    """Partitions by topic: `partitions(x=(0, 1))`."""
    return {name.encode(): frozenset(some) for name, some in numbers.items()}


class Driver:
    def __init__(self, *, topics=None, group=None, **settings):
        self.settings = GroupSettings(**settings)
        self.topics = topic_infos(x=4) if topics is None else topics
        self.now_ms = START_MS
        self.group = group or ConsumerGroup("g", self.settings, self.topics, self.now_ms)
        self.effects = []

    # --- the consumer protocol

    def heartbeat(self, member, epoch, **fields):
        return self.ask(
            ConsumerHeartbeat(
                reply_token=REPLY_TOKEN, member_id=member, member_epoch=epoch, **fields
            )
        )

    def join_consumer(self, member, *names, **fields):
        """Join; the topic x if no other is named."""
        fields.setdefault("owned", {})
        fields.setdefault("rebalance_timeout_ms", REBALANCE_MS)
        return self.heartbeat(member, 0, subscribed_names=names or ("x",), **fields)

    # --- the classic protocol

    def join(self, member, *names, owned=(), protocols=("range",), **fields):
        metadata = encode_subscription(Subscription(names or ("x",), owned=tuple(owned)))
        offers = tuple((name, metadata) for name in protocols)
        return self.update_protocols(member, offers, **fields)

    def update_protocols(self, member, protocols, **fields):
        fields = {
            "new_member_id": f"{member}-new",
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
            "protocol_type": "consumer",
            "protocols": protocols,
        } | fields
        return self.ask(Join(reply_token=REPLY_TOKEN, member_id=member, **fields))

    def sync(self, member, generation, **fields):
        fields = {"assignments": {}, **fields}
        response = self.ask(
            Sync(reply_token=REPLY_TOKEN, member_id=member, generation=generation, **fields)
        )
        return decode_assignment(response.assignment)

    def classic_heartbeat(self, member, generation, **fields):
        return self.ask(
            Heartbeat(reply_token=REPLY_TOKEN, member_id=member, generation=generation, **fields)
        )

    def leave(self, *members):
        leavers = tuple(
            MemberIdentity(member_id=name, instance_id=instance) for name, instance in members
        )
        return [
            error for *_, error in self.ask(Leave(reply_token=REPLY_TOKEN, members=leavers)).members
        ]

    # --- topics, time and coordinators

    def change_topics(self, **counts):
        self.topics = topic_infos(**counts)
        return self.feed(TopicsChanged(topics=self.topics))

    def wait(self, passed_ms):
        self.now_ms += passed_ms
        return self.feed(Tick())

    def restart(self):
        """Another coordinator restores the saved group."""
        self.group = ConsumerGroup.restored(
            self.group.record(), self.settings, self.topics, self.now_ms
        )

    def ask(self, event):
        (reply,) = (e for e in self.feed(event) if isinstance(e, Reply))
        assert reply.reply_token == REPLY_TOKEN
        if isinstance(reply.response, KafscaleError):
            raise reply.response
        return reply.response

    def feed(self, event):
        self.effects = self.group.handle(event, self.now_ms)
        return self.effects

    # --- effects

    @property
    def saved(self):
        return any(isinstance(effect, Save) for effect in self.effects)

    @property
    def is_durable(self):
        return any(effect.is_durable for effect in self.effects if isinstance(effect, Reply))

    @property
    def rebalanced(self):
        return any(isinstance(effect, Rebalanced) for effect in self.effects)

    def member(self, member):
        return self.group.record().members[member]
