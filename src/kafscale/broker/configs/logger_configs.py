"""The levels of this broker's loggers, as configs (KIP-412).

Invariants: levels have Kafka's names, of which there are more than levels here: TRACE logs what
DEBUG logs, and FATAL only what is critical. Every package is a logger, and so are the loggers of
libraries; one without a level has that of its parent. The audit log is none of them: who may change
levels must not disable it.
"""

from collections.abc import Collection, Mapping

from kafscale.errors import InvalidConfigError, InvalidRequestError
from kafscale.metadata.topics.config_types import ConfigSource, ConfigType
from kafscale.observability import logging
from kafscale.protocol.messages.describe_configs import DescribedConfig


class LoggerRules:
    """What the levels of loggers may be, with Kafka's errors."""

    def inherited_list(self, name: str) -> str | None:
        del name
        return None

    def not_a_list(self, name: str, operation: str) -> InvalidRequestError:
        del name
        return InvalidRequestError(
            f"{operation} operation is not allowed for the BROKER_LOGGER resource"
        )

    def checked(self, configs: Mapping[str, str], named: Collection[str]) -> dict[str, str]:
        known = logging.logger_names()
        for name in sorted(named):
            if name not in known:
                raise InvalidConfigError(f"Logger {name} does not exist!")
            if name == logging.ROOT and name not in configs:
                raise InvalidRequestError(
                    "Removing the log level of the root logger is not allowed"
                )
            level = configs.get(name)
            if level is not None and level not in logging.KAFKA_LEVELS:
                raise InvalidConfigError(
                    f"Cannot set the log level of {name} to {level} as it is not a supported log"
                    f" level. Valid log levels are {', '.join(sorted(logging.KAFKA_LEVELS))}"
                )
        return dict(configs)


def describe() -> list[DescribedConfig]:
    """The effective level of each logger."""
    return [
        DescribedConfig(
            name=name,
            value=logging.effective_level(name),
            source=ConfigSource.DYNAMIC_BROKER_LOGGER,
            type=ConfigType.STRING,
            documentation="The lowest level of events that this logger writes.",
        )
        for name in sorted(logging.logger_names())
    ]
