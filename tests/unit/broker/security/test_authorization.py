"""The request authorizer: decisions, errors and the audit log."""

import pytest

from kafscale.broker.requests.context import ClientInfo, RequestContext, ShutdownSignal
from kafscale.broker.security.authorization import RequestAuthorizer
from kafscale.errors import TopicAuthorizationError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.produce import PRODUCE
from kafscale.security.principal import Principal

TOPIC, WRITE = ResourceType.TOPIC, Operation.WRITE
MINE = "mine"


class StubAuthorizer:
    """Allows alice to write to one topic, and records its calls."""

    def __init__(self):
        self.calls = []

    def allows(self, *call):
        self.calls.append(call)
        return call == (Principal("User:alice"), "10.0.0.1", WRITE, TOPIC, MINE)

    def allows_any(self, *call):
        self.calls.append(call)
        return call == (Principal("User:alice"), "10.0.0.1", WRITE, TOPIC)


class StubAuditLog:
    def __init__(self):
        self.denied_names = []

    def denied(self, _context, operation, resource_type, name):
        self.denied_names.append((operation, resource_type, name))


class Broker:
    """The part of `Services` that authorization uses."""

    def __init__(self, *, is_enabled=True):
        self.stub = StubAuthorizer()
        self.audit = StubAuditLog()
        self.authorizer = RequestAuthorizer(self.stub, self.audit) if is_enabled else None

    def context(self, principal="User:alice"):
        client = ClientInfo("10.0.0.1", 50_000, principal=Principal(principal))
        return RequestContext(client, "app", PRODUCE, 9, 7, 0, 0.0, self, ShutdownSignal())


def test_allowed_operation_is_not_logged():
    broker = Broker()
    assert broker.context().is_authorized(WRITE, TOPIC, MINE)
    assert broker.audit.denied_names == []


def test_denied_operation_is_logged():
    broker = Broker()
    assert not broker.context().is_authorized(WRITE, TOPIC, "theirs")
    assert not broker.context("User:bob").is_authorized(WRITE, TOPIC, MINE)
    assert broker.audit.denied_names == [(WRITE, TOPIC, "theirs"), (WRITE, TOPIC, MINE)]


def test_quiet_check_is_not_logged():
    broker = Broker()
    assert not broker.context().is_authorized(WRITE, TOPIC, "theirs", quiet=True)
    assert broker.audit.denied_names == []


def test_require_raises_the_authorization_error():
    broker = Broker()
    broker.context().require(WRITE, TOPIC, MINE)
    with pytest.raises(TopicAuthorizationError):
        broker.context().require(WRITE, TOPIC, "theirs")
    assert broker.audit.denied_names == [(WRITE, TOPIC, "theirs")]


def test_is_authorized_for_any_is_not_logged():
    broker = Broker()
    assert broker.context().is_authorized_for_any(WRITE, TOPIC)
    assert not broker.context("User:bob").is_authorized_for_any(WRITE, TOPIC)
    assert broker.audit.denied_names == []


def test_operation_missing_in_the_permissions_table_is_a_defect():
    broker = Broker()
    with pytest.raises(AssertionError):
        broker.context().is_authorized(Operation.ALTER_CONFIGS, ResourceType.CLUSTER)
    with pytest.raises(AssertionError):
        broker.context().is_authorized_for_any(Operation.ALTER_CONFIGS, ResourceType.CLUSTER)
    assert broker.stub.calls == []


def test_disabled_authorization_allows_everything():
    context = Broker(is_enabled=False).context()
    assert context.is_authorized(WRITE, TOPIC, "anything")
    assert context.is_authorized_for_any(WRITE, TOPIC)
    context.require(WRITE, TOPIC, "anything")
