"""Clients of a consumer group: what they were assigned, and what they have revoked.

A client owns what it was assigned, from the response until it reports that it has revoked it. It
may be slow, a response may be lost, and it may crash; but it reports truthfully.
"""

from contextlib import suppress

from kafscale.errors import (
    FencedMemberEpochError,
    IllegalGenerationError,
    KafscaleError,
    RebalanceInProgressError,
    UnknownMemberError,
    UnreleasedInstanceError,
)
from unit.groups.consumer.driver import REBALANCE_MS


def pairs(partitions):
    return {(topic, number) for topic, numbers in partitions.items() for number in numbers}


def grouped(owned):
    return {topic: frozenset(n for t, n in owned if t == topic) for topic, _ in owned}


def name_of(topic_id):
    """A topic that is deleted and created again has a new id, but the same name."""
    return topic_id.decode().partition("#")[0]


class ConsumerClient:
    """A client of the consumer protocol."""

    def __init__(self, driver, member_id, names, instance_id=None):
        self.driver = driver
        self.member_id = member_id
        self.names = names
        self.instance_id = instance_id
        self.epoch = 0
        self.owned_now = set()
        """What it has taken up and not revoked."""
        self.assigned = set()
        """Its last assignment."""
        self.must_report_owned = True
        """Whether it has to report what it owns."""
        self.must_send_all = True
        """Whether it has to send a full request, after a start or a lost response."""

    @property
    def owned(self):
        return self.owned_now | self.assigned

    def heartbeat(self, *, is_lost=False):
        if self.must_send_all:
            self.apply_assignment()
        fields = {"subscribed_names": self.names, "rebalance_timeout_ms": REBALANCE_MS}
        if not self.must_send_all:
            fields = {}
        if self.must_report_owned or self.must_send_all:
            fields["owned"] = grouped(self.owned_now)
        try:
            response = self.driver.heartbeat(
                self.member_id, self.epoch, instance_id=self.instance_id, **fields
            )
        except (UnknownMemberError, FencedMemberEpochError):
            self.restart()
        except UnreleasedInstanceError:
            assert self.instance_id is not None
        else:
            self.must_send_all = is_lost
            if not is_lost:
                self.must_report_owned = False
                self.on_response(response)

    def on_response(self, response):
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.assigned = pairs(response.assignment)

    def apply_assignment(self):
        """Take up and revoke partitions as assigned."""
        if self.owned_now != self.assigned or self.epoch:
            self.must_report_owned = True
        self.owned_now = set(self.assigned)

    def subscribe(self, names):
        self.names = names
        self.must_send_all = True

    def leave(self):
        epoch = -1 if self.instance_id is None else -2
        with suppress(UnknownMemberError):
            self.driver.heartbeat(self.member_id, epoch, instance_id=self.instance_id)
        self.restart()

    def restart(self):
        """Abandon everything, to join like a new member."""
        self.epoch = 0
        self.owned_now, self.assigned = set(), set()
        self.must_report_owned = self.must_send_all = True


class ClassicClient:
    """A client of the classic protocol, eager or cooperative."""

    def __init__(self, driver, member_id, names, *, is_eager):
        self.driver = driver
        self.member_id = member_id
        self.names = names
        self.is_eager = is_eager
        self.generation = -1
        self.owned = set()
        self.must_join = True

    def heartbeat(self, *, is_lost=False):
        try:
            if self.must_join:
                self.join(is_lost=is_lost)
            else:
                self.driver.classic_heartbeat(self.member_id, self.generation)
        except RebalanceInProgressError:
            self.must_join = True
        except (UnknownMemberError, IllegalGenerationError):
            self.restart()

    def join(self, *, is_lost):
        if self.is_eager:
            self.owned = set()
        owned = [(name_of(topic), tuple(n)) for topic, n in grouped(self.owned).items()]
        joined = self.driver.join(self.member_id, *self.names, owned=owned)
        if is_lost:
            return
        self.generation = joined.generation
        assigned = self.driver.sync(self.member_id, self.generation)
        assigned = pairs(
            {self.driver.topics[name].id: numbers for name, numbers in assigned.items()}
        )
        # A cooperative client rejoins once it has revoked something, to report it.
        self.must_join = bool(self.owned - assigned)
        self.owned = assigned

    def apply_assignment(self):
        """It does so at once."""

    def subscribe(self, names):
        self.names = names
        self.must_join = True

    def leave(self):
        (error,) = self.driver.leave((self.member_id, None))
        assert error is None or isinstance(error, KafscaleError)
        self.restart()

    def restart(self):
        self.owned = set()
        self.must_join = True
