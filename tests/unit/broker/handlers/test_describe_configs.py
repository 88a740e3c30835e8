"""DescribeConfigs: topics, this broker and its logger."""

import pytest

from kafscale.broker.configs.resources import ResourceType
from kafscale.config import Config
from kafscale.config.sections.broker import Broker
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    ResourceToDescribe,
)
from unit.broker.in_memory_broker import CONFIG, NODE_ID, run_with_broker


async def describe(
    broker, kind, name, names=None, *, version=DESCRIBE_CONFIGS.version_max, **options
):
    """The result for one resource, and its configs by name."""
    resource = ResourceToDescribe(kind, name, names)
    request = DescribeConfigsRequest([resource], **options)
    response = await broker.ask(DESCRIBE_CONFIGS, request, version)
    [result] = response.resources
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result, {config.name: config for config in result.configs}


@pytest.mark.parametrize("version", DESCRIBE_CONFIGS.versions)
def test_topic_has_all_its_configs(version):
    async def body(broker):
        await broker.topic("orders", retention_ms="1000")
        result, configs = await describe(broker, ResourceType.TOPIC, "orders", version=version)

        assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
        own, inherited = configs["retention.ms"], configs["segment.ms"]
        assert own.value == "1000"
        if version == 0:
            assert (own.is_default, inherited.is_default) == (False, True)
        else:
            assert (own.source, inherited.source) == (1, 5)
        if version >= 3:
            assert own.type == 5

    run_with_broker(body)


@pytest.mark.parametrize("version", range(3, DESCRIBE_CONFIGS.version_max + 1))
@pytest.mark.parametrize("requested", [False, True])
def test_synonyms_and_documentation_are_returned_on_request(version, requested):
    async def body(broker):
        await broker.topic("orders", retention_ms="1000")
        for kind, name in (
            (ResourceType.TOPIC, "orders"),
            (ResourceType.BROKER, str(NODE_ID)),
            (ResourceType.BROKER_LOGGER, str(NODE_ID)),
        ):
            options = {"include_synonyms": requested, "include_documentation": requested}
            _, configs = await describe(broker, kind, name, version=version, **options)
            assert all(bool(config.documentation) == requested for config in configs.values())
            assert any(config.synonyms for config in configs.values()) == (
                requested and kind != ResourceType.BROKER_LOGGER
            )

    run_with_broker(body)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["retention.ms"], {"retention.ms"}),
        (["retention.ms", "no.such"], {"retention.ms"}),
        (["no.such"], set()),
    ],
)
def test_requested_configs_only(names, expected):
    async def body(broker):
        await broker.topic("orders")
        _, configs = await describe(broker, ResourceType.TOPIC, "orders", names)
        assert set(configs) == expected
        _, everything = await describe(broker, ResourceType.TOPIC, "orders", [])
        assert len(everything) > 10

    run_with_broker(body)


@pytest.mark.parametrize(
    ("host", "listener"),
    [
        ("", "PLAINTEXT://10.0.0.9:9092"),
        ("kafka.example", "PLAINTEXT://kafka.example:9092"),
        ("2001:db8::1", "PLAINTEXT://[2001:db8::1]:9092"),
    ],
)
def test_configs_of_this_broker(host, listener):
    async def body(broker):
        result, configs = await describe(broker, ResourceType.BROKER, str(NODE_ID))

        assert result.error_code == ErrorCode.NONE
        assert configs["broker.id"].value == str(NODE_ID)
        assert configs["advertised.listeners"].value == listener
        assert configs["broker.id"].read_only
        assert not configs["message.max.bytes"].read_only

    run_with_broker(body, config=Config(s3=CONFIG.s3, broker=Broker(advertised_host=host)))


def test_there_are_no_cluster_wide_dynamic_configs():
    async def body(broker):
        result, configs = await describe(broker, ResourceType.BROKER, "")
        assert (result.error_code, configs) == (ErrorCode.NONE, {})

    run_with_broker(body)


def test_loggers_have_their_levels():
    async def body(broker):
        _, configs = await describe(broker, ResourceType.BROKER_LOGGER, str(NODE_ID))
        assert {"root", "kafscale", "kafscale.broker.handlers"} <= set(configs)
        assert "kafscale.audit" not in configs, "it cannot be disabled"
        assert configs["root"].source == 6
        assert not configs["root"].read_only

    run_with_broker(body)


@pytest.mark.parametrize("version", DESCRIBE_CONFIGS.versions)
@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (ResourceType.TOPIC, "missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ResourceType.TOPIC, "or/ders", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (ResourceType.BROKER, "8", ErrorCode.INVALID_REQUEST),
        (ResourceType.BROKER_LOGGER, "", ErrorCode.INVALID_REQUEST),
        (ResourceType.GROUP, "", ErrorCode.INVALID_REQUEST),
        (ResourceType.BROKER_LOGGER, "x", ErrorCode.INVALID_REQUEST),
        (0, "", ErrorCode.INVALID_REQUEST),
    ],
)
def test_other_resources_are_refused(version, kind, name, code):
    async def body(broker):
        result, configs = await describe(broker, kind, name, version=version)

        assert (result.error_code, configs) == (code, {})
        assert result.error_message

    run_with_broker(body)
