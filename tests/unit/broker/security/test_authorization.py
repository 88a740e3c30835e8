"""Access: what handlers ask, what rules answer, what the audit log hears of it."""

import pytest

from kafscale.broker.requests.context import ClientInfo, Drain, RequestContext
from kafscale.broker.security.authorization import Access
from kafscale.errors import TopicAuthorizationError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.produce import PRODUCE
from kafscale.security.principal import Principal

TOPIC, WRITE = ResourceType.TOPIC, Operation.WRITE
MINE = "mine"


class Rules:
    """An authorizer that lets alice write to one topic, and remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def allows(self, *question):
        self.asked.append(question)
        return question == (Principal("User:alice"), "10.0.0.1", WRITE, TOPIC, MINE)

    def allows_any(self, *question):
        self.asked.append(question)
        return question == (Principal("User:alice"), "10.0.0.1", WRITE, TOPIC)


class Trail:
    def __init__(self):
        self.denied_names = []

    def denied(self, _context, operation, resource_type, name):
        self.denied_names.append((operation, resource_type, name))


class Broker:
    """What a context has of a broker, here."""

    def __init__(self, *, has_rules=True):
        self.rules = Rules()
        self.trail = Trail()
        self.access = Access(self.rules, self.trail) if has_rules else None

    def context(self, principal="User:alice"):
        client = ClientInfo("10.0.0.1", 50_000, identity=Principal(principal))
        return RequestContext(client, "app", PRODUCE, 9, 7, 0, 0.0, self, Drain())


def test_what_the_rules_allow_is_allowed_and_nothing_is_told():
    broker = Broker()
    assert broker.context().may(WRITE, TOPIC, MINE)
    assert broker.trail.denied_names == []


def test_what_they_do_not_allow_is_denied_and_told():
    broker = Broker()
    assert not broker.context().may(WRITE, TOPIC, "theirs")
    assert not broker.context("User:bob").may(WRITE, TOPIC, MINE)
    assert broker.trail.denied_names == [(WRITE, TOPIC, "theirs"), (WRITE, TOPIC, MINE)]


def test_a_quiet_question_is_not_told():
    broker = Broker()
    assert not broker.context().may(WRITE, TOPIC, "theirs", quiet=True)
    assert broker.trail.denied_names == []


def test_a_demand_raises_what_is_told_to_the_client():
    broker = Broker()
    broker.context().demand(WRITE, TOPIC, MINE)
    with pytest.raises(TopicAuthorizationError):
        broker.context().demand(WRITE, TOPIC, "theirs")
    assert broker.trail.denied_names == [(WRITE, TOPIC, "theirs")]


def test_whether_there_is_anything_that_one_may_is_an_everyday_question():
    broker = Broker()
    assert broker.context().may_any(WRITE, TOPIC)
    assert not broker.context("User:bob").may_any(WRITE, TOPIC)
    assert broker.trail.denied_names == []


def test_to_ask_for_what_the_table_does_not_list_is_a_defect():
    broker = Broker()
    with pytest.raises(AssertionError):
        broker.context().may(Operation.ALTER_CONFIGS, ResourceType.CLUSTER)
    with pytest.raises(AssertionError):
        broker.context().may_any(Operation.ALTER_CONFIGS, ResourceType.CLUSTER)
    assert broker.rules.asked == []


def test_while_nothing_is_asked_everything_is_allowed():
    context = Broker(has_rules=False).context()
    assert context.may(WRITE, TOPIC, "anything")
    assert context.may_any(WRITE, TOPIC)
    context.demand(WRITE, TOPIC, "anything")
