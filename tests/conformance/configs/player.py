"""Requests about configs to one server, with their errors as values to compare."""

import time
from collections.abc import Sequence
from typing import Any

from kafscale.protocol.messages import alter_configs as legacy
from kafscale.protocol.messages import incremental_alter_configs as incremental
from kafscale.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribedConfig,
    ResourceToDescribe,
)
from services.wire import LATEST, Wire

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER, BROKER_LOGGER, GROUP = 2, 4, 8, 32

MARKED = "marked"
"""A topic whose changes show that earlier ones are visible."""
VISIBLE_S_MAX = 10
APPLIED_S = 0.02
"""How much later than its topics Kafka's broker applies its own configs."""

Error = tuple[int, str | None]
Operation = tuple[str, int, str | None]


class Player(Wire):
    """A connection to a server."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self._marks = 0

    def create(self, topic: str, partitions: int = 1, **configs: object) -> None:
        """Create a topic, and wait for its leader."""
        super().create(topic, partitions, **configs)
        deadline = time.monotonic() + VISIBLE_S_MAX
        while self.offset(topic, LATEST).error_code:
            assert time.monotonic() < deadline, "the topic has no leader"
            time.sleep(0.005)

    def settle(self) -> None:
        """Wait until changes are visible: Kafka responds before its broker has applied them.

        They are applied in order, so a last one shows that all others are.
        """
        if not self._marks:
            self.create(MARKED)
        self._marks += 1
        mark = str(self._marks)
        assert self.alter(TOPIC, MARKED, ("retention.ms", SET, mark)) == (0, None)
        deadline = time.monotonic() + VISIBLE_S_MAX
        while self.described(TOPIC, MARKED, "retention.ms")[1]["retention.ms"].value != mark:
            assert time.monotonic() < deadline, "the change is not visible"
            time.sleep(0.005)
        time.sleep(APPLIED_S)

    def alter(
        self, kind: int, name: str, *operations: Operation, validate_only: bool = False
    ) -> Error:
        """IncrementalAlterConfigs of one resource: the error code and message."""
        configs = [incremental.ConfigToAlter(*each) for each in operations]
        return self.alter_all([incremental.ResourceToAlter(kind, name, configs)], validate_only)[0]

    def alter_all(
        self, resources: Sequence[incremental.ResourceToAlter], validate_only: bool = False
    ) -> list[Error]:
        request = incremental.IncrementalAlterConfigsRequest(list(resources), validate_only)
        response = self.call(incremental.INCREMENTAL_ALTER_CONFIGS, 1, request)
        return [(each.error_code, each.error_message) for each in response.resources]

    def replace(
        self, kind: int, name: str, *configs: tuple[str, str | None], validate_only: bool = False
    ) -> Error:
        """AlterConfigs of one resource."""
        requested = [legacy.ConfigToSet(*each) for each in configs]
        request = legacy.AlterConfigsRequest(
            [legacy.ResourceToAlter(kind, name, requested)], validate_only
        )
        [result] = self.call(legacy.ALTER_CONFIGS, 2, request).resources
        return result.error_code, result.error_message

    def describe(self, kind: int, name: str, *names: str) -> dict[str, DescribedConfig]:
        """The described configs, which must exist."""
        error, configs = self.described(kind, name, *names)
        assert error == 0, error
        return configs

    def described(self, kind: int, name: str, *names: str) -> tuple[int, dict[str, Any]]:
        resource = ResourceToDescribe(kind, name, list(names) or None)
        request = DescribeConfigsRequest([resource], include_synonyms=True)
        [result] = self.call(DESCRIBE_CONFIGS, 4, request).resources
        return result.error_code, {config.name: config for config in result.configs}

    def value(self, kind: int, name: str, config: str) -> tuple[str | None, int]:
        """A value and its source, once changes are visible."""
        self.settle()
        described = self.describe(kind, name, config)[config]
        return described.value, described.source
