"""Changes of the configs of a resource, as AlterConfigs and IncrementalAlterConfigs request them.

Invariants: a request is checked before any resource is read, and a change is applied as a whole or
not at all. A change has no effects, so that it can be repeated after a conflict and tried for
`validate_only`. The errors have Kafka's words.
"""

import enum
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from kafscale.errors import InvalidConfigError, InvalidRequestError, KafscaleError
from kafscale.protocol.messages.alter_configs import ConfigToSet
from kafscale.protocol.messages.incremental_alter_configs import ConfigToAlter


class Operation(enum.IntEnum):
    """The operations of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigRules(Protocol):
    """What the configs of a resource may be."""

    def inherited_list(self, name: str) -> str | None:
        """The value of a list that is not set; None if the config is not a list."""

    def not_a_list(self, name: str, operation: str) -> KafscaleError:
        """The error for APPEND or SUBTRACT on another config."""

    def checked(self, configs: Mapping[str, str], named: Collection[str]) -> dict[str, str]:
        """The configs as they are stored; raises if one is invalid, or the combination.

        Those that the request has not named were checked before; those that it deletes are not in
        `configs` any more.
        """


Change = Callable[[Mapping[str, str], ConfigRules], dict[str, str]]
"""Returns the new configs of a resource for its current ones."""


def not_a_list(name: str, operation: str) -> InvalidConfigError:
    """Kafka's error for topics and groups."""
    return InvalidConfigError(f"Can't {operation} to key {name} because its type is not LIST.")


def replacement(requested: Sequence[ConfigToSet]) -> Change:
    """Replace all configs."""
    _check_names(config.name for config in requested)
    _check_nulls(config.name for config in requested if config.value is None)
    configs = {config.name: config.value or "" for config in requested}
    return lambda _current, rules: rules.checked(configs, configs)


def incremental(requested: Sequence[ConfigToAlter]) -> Change:
    """Change single configs."""
    _check_names(config.name for config in requested)
    _check_nulls(
        config.name
        for config in requested
        if config.value is None and config.operation != Operation.DELETE
    )
    for config in requested:
        if config.operation not in set(Operation):
            raise InvalidRequestError(f"Unknown operations type {config.operation}")

    def change(current: Mapping[str, str], rules: ConfigRules) -> dict[str, str]:
        changed = dict(current)
        for config in requested:
            if config.operation == Operation.DELETE:
                changed.pop(config.name, None)
            else:
                changed[config.name] = _changed(current.get(config.name), config, rules)
        return rules.checked(changed, {config.name for config in requested})

    return change


def _changed(current: str | None, requested: ConfigToAlter, rules: ConfigRules) -> str:
    """The value of a config after an operation other than a deletion."""
    name, value = requested.name, requested.value or ""
    operation = Operation(requested.operation)
    if operation is Operation.SET:
        return value
    inherited = rules.inherited_list(name)
    if inherited is None:
        raise rules.not_a_list(name, operation.name)
    before = inherited if current is None else current
    items = _split(before) if before else []
    for item in _split(value):
        if operation is Operation.SUBTRACT and item in items:
            items.remove(item)
        elif operation is Operation.APPEND and item not in items:
            items.append(item)
    return ",".join(items)


def _split(text: str) -> list[str]:
    """The items of a list; as in Kafka, an empty text is one item, and trailing ones are dropped.

    >>> _split("a, b,,"), _split("")
    (['a', ' b'], [''])
    """
    items = text.split(",")
    while len(items) > 1 and not items[-1]:
        items.pop()
    return items


def _check_names(names: Iterable[str]) -> None:
    if any(count > 1 for count in Counter(names).values()):
        raise InvalidRequestError("Error due to duplicate config keys")


def _check_nulls(names: Iterable[str]) -> None:
    if listed := ", ".join(names):
        raise InvalidRequestError(f"Null value not supported for : {listed}")
