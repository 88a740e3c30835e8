"""Clients of a consumer group, as it sees them: what they are told, and what they have given up.

A client owns what it was told to own, from when it hears of it until it says that it has given it
up. It may be slow to take up or give up, an answer may be lost, and it may die; but it is honest.
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


class ModernClient:
    """It speaks the new protocol."""

    def __init__(self, driver, member_id, names, instance_id=None):
        self.driver = driver
        self.member_id = member_id
        self.names = names
        self.instance_id = instance_id
        self.epoch = 0
        self.taken = set()
        """What it has taken up and not given up."""
        self.told = set()
        """What it was last told to own."""
        self.has_news = True
        """Whether there is something to say of what it owns."""
        self.is_doubtful = True
        """Whether it has to say everything, as it has just begun or missed an answer."""

    @property
    def owned(self):
        return self.taken | self.told

    def beat(self, *, is_lost=False):
        if self.is_doubtful:
            self.obey()
        fields = {"subscribed_names": self.names, "rebalance_timeout_ms": REBALANCE_MS}
        if not self.is_doubtful:
            fields = {}
        if self.has_news or self.is_doubtful:
            fields["owned"] = grouped(self.taken)
        try:
            answer = self.driver.beat(
                self.member_id, self.epoch, instance_id=self.instance_id, **fields
            )
        except (UnknownMemberError, FencedMemberEpochError):
            self.begin_again()
        except UnreleasedInstanceError:
            assert self.instance_id is not None
        else:
            self.is_doubtful = is_lost
            if not is_lost:
                self.has_news = False
                self.hear(answer)

    def hear(self, answer):
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.told = pairs(answer.assignment)

    def obey(self):
        """Take up and give up what it was told to."""
        if self.taken != self.told or self.epoch:
            self.has_news = True
        self.taken = set(self.told)

    def subscribe(self, names):
        self.names = names
        self.is_doubtful = True

    def leave(self):
        epoch = -1 if self.instance_id is None else -2
        with suppress(UnknownMemberError):
            self.driver.beat(self.member_id, epoch, instance_id=self.instance_id)
        self.begin_again()

    def begin_again(self):
        """Abandon everything, to join like a new member."""
        self.epoch = 0
        self.taken, self.told = set(), set()
        self.has_news = self.is_doubtful = True


class ClassicClient:
    """It speaks the classic protocol, and is eager or cooperative."""

    def __init__(self, driver, member_id, names, *, is_eager):
        self.driver = driver
        self.member_id = member_id
        self.names = names
        self.is_eager = is_eager
        self.generation = -1
        self.owned = set()
        self.must_join = True

    def beat(self, *, is_lost=False):
        try:
            if self.must_join:
                self.join(is_lost=is_lost)
            else:
                self.driver.classic_beat(self.member_id, self.generation)
        except RebalanceInProgressError:
            self.must_join = True
        except (UnknownMemberError, IllegalGenerationError):
            self.begin_again()

    def join(self, *, is_lost):
        if self.is_eager:
            self.owned = set()
        owned = [(name_of(topic), tuple(n)) for topic, n in grouped(self.owned).items()]
        joined = self.driver.join(self.member_id, *self.names, owned=owned)
        if is_lost:
            return
        self.generation = joined.generation
        told = self.driver.sync(self.member_id, self.generation)
        told = pairs({self.driver.topics[name].id: numbers for name, numbers in told.items()})
        # A cooperative client joins again once it has given something up, to say so.
        self.must_join = bool(self.owned - told)
        self.owned = told

    def obey(self):
        """It does so at once."""

    def subscribe(self, names):
        self.names = names
        self.must_join = True

    def leave(self):
        (error,) = self.driver.leave((self.member_id, None))
        assert error is None or isinstance(error, KafscaleError)
        self.begin_again()

    def begin_again(self):
        self.owned = set()
        self.must_join = True
