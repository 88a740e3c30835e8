"""Client metrics (KIP-714): subscriptions, and what clients may do when."""

import time

import pytest

from conformance.administration.comparison import normalized
from conformance.administration.conftest import START_S_MAX
from kafscale.protocol.codec.wire import UUID_ZERO
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages import alter_configs
from kafscale.protocol.messages.alter_configs import ALTER_CONFIGS, AlterConfigsRequest, ConfigToSet
from kafscale.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    ResourceToDescribe,
)
from kafscale.protocol.messages.get_telemetry_subscriptions import (
    GET_TELEMETRY_SUBSCRIPTIONS,
    GetTelemetrySubscriptionsRequest,
)
from kafscale.protocol.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    ConfigToAlter,
    IncrementalAlterConfigsRequest,
    ResourceToAlter,
)
from kafscale.protocol.messages.list_config_resources import (
    LIST_CONFIG_RESOURCES,
    ListConfigResourcesRequest,
)
from kafscale.protocol.messages.push_telemetry import PUSH_TELEMETRY, PushTelemetryRequest

pytestmark = pytest.mark.timeout(START_S_MAX)

CLIENT_METRICS = 16
DYNAMIC = 7
"""The source of a config that is set."""
SET, DELETE, APPEND, SUBTRACT = range(4)
INTERVAL_S = 0.5
TOO_LARGE = bytes(1024 * 1024 + 1)


def altering(name, *changes, validate_only=False):
    configs = [ConfigToAlter(*each) for each in changes]
    resource = ResourceToAlter(CLIENT_METRICS, name, configs)
    return IncrementalAlterConfigsRequest([resource], validate_only)


# --- subscriptions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        *(("interval.ms", SET, value) for value in ("99", "3600001", "-1", "x", "", "1.5")),
        *(
            ("match", SET, value)
            for value in ("unknown=x", "client_id", "client_id=(", "client_id=a=b", "=a")
        ),
        ("unknown", SET, "x"),
        *((name, kind, "x") for name in ("metrics", "match") for kind in (APPEND, SUBTRACT)),
        ("metrics", SET, None),
        *(("match", SET, value) for value in ("", "client_id=a,client_id=b", "client_id=.*")),
        *(("metrics", SET, value) for value in ("", "*", "a,,b", "a, b")),
        ("interval.ms", SET, "100"),
        ("interval.ms", DELETE, None),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["checked", ""])
def test_validate_subscriptions(both, name, change):
    both.call(INCREMENTAL_ALTER_CONFIGS, 1, altering(name, change, validate_only=True))


@pytest.mark.parametrize(
    "configs",
    [
        [],
        [("metrics", "*"), ("match", "client_id=never")],
        [("interval.ms", "99")],
        [("metrics", None)],
        [("metrics", "a"), ("metrics", "b")],
        [("unknown", "x")],
    ],
    ids=str,
)
def test_replace_configs(both, configs):
    requested = [ConfigToSet(*each) for each in configs]
    resource = alter_configs.ResourceToAlter(CLIENT_METRICS, "replaced", requested)
    request = AlterConfigsRequest([resource], validate_only=True)
    both.call(ALTER_CONFIGS, 2, request)


def test_replaced_configs_are_described(both):
    def replace(*configs):
        requested = [ConfigToSet(*each) for each in configs]
        resource = alter_configs.ResourceToAlter(CLIENT_METRICS, "replaced", requested)
        both.call(ALTER_CONFIGS, 2, AlterConfigsRequest([resource]))

    describing = DescribeConfigsRequest([ResourceToDescribe(CLIENT_METRICS, "replaced", None)])
    replace(("metrics", "a"), ("match", "client_id=never"))
    for configs in ([("metrics", "b"), ("match", "client_id=never")], []):
        replace(*configs)
        expected = {name for name, _ in configs}
        both.wait_until(
            lambda response, expected=expected: (
                {
                    config.name
                    for config in response.resources[0].configs
                    if config.source == DYNAMIC
                }
                == expected
            ),
            DESCRIBE_CONFIGS,
            4,
            describing,
        )
        both.call(DESCRIBE_CONFIGS, 4, describing)


def test_same_config_twice(both):
    changes = [("metrics", SET, "a"), ("metrics", SET, "b")]
    both.call(INCREMENTAL_ALTER_CONFIGS, 1, altering("twice", *changes, validate_only=True))


def test_create_describe_and_delete_subscription(both):
    def described(name, names=None):
        resource = ResourceToDescribe(CLIENT_METRICS, name, names)
        both.call(DESCRIBE_CONFIGS, 4, DescribeConfigsRequest([resource], include_synonyms=True))

    def wait_until_listed(name, *, is_listed=True):
        both.wait_until(
            lambda response: (
                is_listed == any(each.resource_name == name for each in response.resources)
            ),
            LIST_CONFIG_RESOURCES,
            1,
            ListConfigResourcesRequest([CLIENT_METRICS]),
        )

    name = "a b/ü%"
    described(name)
    described("")
    changes = [("metrics", SET, "a,b"), ("match", SET, "client_id=never")]
    both.call(INCREMENTAL_ALTER_CONFIGS, 1, altering(name, *changes))
    wait_until_listed(name)
    described(name)
    described(name, ["metrics", "unknown"])
    for version in (0, 1):
        request = ListConfigResourcesRequest([CLIENT_METRICS])
        both.call(LIST_CONFIG_RESOURCES, version, request)
    both.call(INCREMENTAL_ALTER_CONFIGS, 1, altering(name, ("metrics", DELETE, None)))
    both.call(INCREMENTAL_ALTER_CONFIGS, 1, altering(name, ("match", DELETE, None)))
    wait_until_listed(name, is_listed=False)
    described(name)


# --- clients --------------------------------------------------------------------------------------


class Instance:
    """A client instance on both servers, each with its own subscription id."""

    def __init__(self, both, name):
        self._both = both
        self.id = name.encode().ljust(16, b".")[:16]
        self._subscription_ids = [0, 0]

    def ask(self):
        """Compare the subscriptions; returns the error code."""
        request = GetTelemetrySubscriptionsRequest(self.id)
        kafkas, own = self._both.set_up(GET_TELEMETRY_SUBSCRIPTIONS, 0, request)
        if not kafkas.error_code:
            self._subscription_ids = [kafkas.subscription_id, own.subscription_id]
        kafkas.subscription_id = own.subscription_id
        preferred = kafkas.accepted_compression_types
        assert own.accepted_compression_types == preferred
        assert normalized(own) == normalized(kafkas)
        return kafkas.error_code

    def push(self, *, other_subscription=0, **fields):
        """Compare the error codes, and return them as one."""
        codes = {
            wire.call(
                PUSH_TELEMETRY,
                0,
                PushTelemetryRequest(self.id, subscription_id + other_subscription, **fields),
            ).error_code
            for wire, subscription_id in zip(self._both.wires, self._subscription_ids, strict=True)
        }
        assert len(codes) == 1, codes
        return codes.pop()


@pytest.fixture
def instance(both, request):
    return Instance(both, request.node.name.removeprefix("test_"))


def test_new_instance_gets_an_id(both):
    for response in both.set_up(
        GET_TELEMETRY_SUBSCRIPTIONS, 0, GetTelemetrySubscriptionsRequest(UUID_ZERO)
    ):
        assert response.error_code == ErrorCode.NONE
        assert response.client_instance_id != UUID_ZERO


def test_once_per_interval(instance):
    assert instance.ask() == ErrorCode.NONE
    assert instance.ask() == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert instance.push() == ErrorCode.NONE
    assert instance.push() == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert instance.ask() == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_last_push(instance):
    instance.ask()
    instance.push()
    assert instance.push(terminating=True) == ErrorCode.NONE
    assert instance.push() == ErrorCode.INVALID_REQUEST
    assert instance.push(terminating=True) == ErrorCode.NONE
    assert instance.ask() == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_subscription_id(instance):
    assert instance.push(other_subscription=1) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert instance.push(other_subscription=1) == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_ask_after_unknown_subscription(instance):
    instance.ask()
    assert instance.push(other_subscription=1) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert instance.ask() == ErrorCode.NONE
    assert instance.ask() == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_ask_after_unsupported_codec(instance):
    instance.ask()
    assert instance.push(compression_type=9) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert instance.ask() == ErrorCode.NONE


def test_too_large(instance):
    instance.ask()
    assert instance.push(metrics=TOO_LARGE) == ErrorCode.TELEMETRY_TOO_LARGE
    assert instance.ask() == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_damaged_compression(instance):
    instance.ask()
    assert instance.push(compression_type=1, metrics=b"damaged") == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("last_byte", [0, 1])
def test_reserved_ids(instance, last_byte):
    instance.id = bytes(15) + bytes([last_byte])
    assert instance.push() == ErrorCode.INVALID_REQUEST


def test_change_of_subscriptions(both, instance):
    """The names of metrics come in any order."""
    changes = [("metrics", SET, "b,a"), ("interval.ms", SET, str(int(INTERVAL_S * 1000)))]
    matching = ("match", SET, "client_id=wi.*")
    instance.ask()
    both.call(INCREMENTAL_ALTER_CONFIGS, 1, altering("changed", *changes, matching))
    time.sleep(INTERVAL_S)
    assert instance.ask() == ErrorCode.NONE
    assert instance.push() == ErrorCode.NONE
    assert instance.push() == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    time.sleep(INTERVAL_S)
    assert instance.push() == ErrorCode.NONE
    both.call(INCREMENTAL_ALTER_CONFIGS, 1, altering("changed", ("metrics", SET, "*")))
    time.sleep(INTERVAL_S)
    assert instance.ask() == ErrorCode.NONE
    deletions = [(name, DELETE, None) for name in ("metrics", "interval.ms", "match")]
    both.call(INCREMENTAL_ALTER_CONFIGS, 1, altering("changed", *deletions))
    time.sleep(INTERVAL_S)
