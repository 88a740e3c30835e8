"""Broker configs, as DescribeConfigs returns them.

Invariants: a Kafka config is listed only if the broker has a true value for it, or keeps one that
was set; another config without meaning here is left out. Secrets are never listed. A broker is
configured by its settings (`config`), which appear here under Kafka's names, and under names of
Kafscale's own, and by dynamic configs; the others are read-only.
"""

from collections.abc import Iterator, Mapping

from kafscale.broker.configs import dynamic_configs
from kafscale.broker.configs.broker_config_defs import BROKER_CONFIGS, BY_NAME, BrokerConfig
from kafscale.broker.configs.dynamic_configs import BY_PATH, KEPT, TOPIC_DEFAULTS, format_value
from kafscale.broker.configs.live_settings import LiveSettings
from kafscale.config import Config
from kafscale.config.model import DEFAULT
from kafscale.metadata.topics.config_types import ConfigSource, ConfigType
from kafscale.metadata.topics.config_validation import Layer
from kafscale.protocol.messages.describe_configs import ConfigSynonym, DescribedConfig


def describe(
    settings: LiveSettings, *, broker_id: int, advertised_listeners: str
) -> list[DescribedConfig]:
    """Every config of the broker, by name.

    The caller passes the id and the listeners, because the settings may leave them open: the id
    may come from the host name, a port of 0 from the system. Listeners are `PLAINTEXT://host:port`.
    """
    static = settings.static
    rows = [
        *_identity(static, broker_id, advertised_listeners),
        *(_describe_setting(static, each, settings.layers) for each in BROKER_CONFIGS),
        *_topic_defaults(settings),
        *_kept(settings.layers),
    ]
    return sorted(rows, key=lambda row: row.name)


def describe_dynamic(configs: Mapping[str, str], source: ConfigSource) -> list[DescribedConfig]:
    """The dynamic configs that all brokers have."""
    return [
        _entry(name, [(source, value)], _type(name), _documentation(name))
        for name, value in sorted(dynamic_configs.valid(configs).items())
    ]


def _identity(
    config: Config, broker_id: int, advertised_listeners: str
) -> Iterator[DescribedConfig]:
    id_source = _source(config, "broker.id")
    for name in ("broker.id", "node.id"):
        value = (id_source, str(broker_id))
        yield _entry(name, [value], ConfigType.INT, "The id of this broker.")
    yield _entry(
        "advertised.listeners",
        [(ConfigSource.STATIC_BROKER, advertised_listeners)],
        ConfigType.LIST,
        "The addresses that clients connect to.",
    )
    yield _entry(
        "default.replication.factor",
        [(ConfigSource.DEFAULT, "1")],
        ConfigType.INT,
        "Always 1: the object store replicates records, brokers do not.",
    )


def _describe_setting(
    static: Config, described: BrokerConfig, layers: tuple[Layer, ...]
) -> DescribedConfig:
    setting = BY_PATH[described.path]
    values = _dynamic(described.name, layers)
    if (source := _source(static, described.path)) is not ConfigSource.DEFAULT:
        values.append((source, format_value(setting.value(static))))
        default = setting.default
    else:
        default = setting.value(static)
    values.append((ConfigSource.DEFAULT, format_value(default)))
    return _entry(described.name, values, described.type, described.documentation)


def _topic_defaults(settings: LiveSettings) -> Iterator[DescribedConfig]:
    """The broker-wide defaults of topic configs."""
    for name, row in TOPIC_DEFAULTS.items():
        layers = settings.topic_defaults.layers
        values = [(source, values[row.name]) for source, values in layers if row.name in values]
        yield _entry(name, values, row.type.type, row.full_documentation)


def _kept(layers: tuple[Layer, ...]) -> Iterator[DescribedConfig]:
    for name, kept in KEPT.items():
        values = [*_dynamic(name, layers), (ConfigSource.DEFAULT, kept.default)]
        yield _entry(name, values, kept.type.type, kept.documentation)


def _dynamic(name: str, layers: tuple[Layer, ...]) -> list[tuple[ConfigSource, str]]:
    return [(source, values[name]) for source, values in layers if name in values]


def _type(name: str) -> ConfigType:
    if row := TOPIC_DEFAULTS.get(name):
        return row.type.type
    return KEPT[name].type.type if name in KEPT else BY_NAME[name].type


def _documentation(name: str) -> str:
    if row := TOPIC_DEFAULTS.get(name):
        return row.full_documentation
    return KEPT[name].documentation if name in KEPT else BY_NAME[name].documentation


def _source(config: Config, path: str) -> ConfigSource:
    return ConfigSource.DEFAULT if config.origin(path) == DEFAULT else ConfigSource.STATIC_BROKER


def _entry(
    name: str, values: list[tuple[ConfigSource, str]], type_: ConfigType, documentation: str
) -> DescribedConfig:
    """A config with its values in order of precedence."""
    source, value = values[0]
    return DescribedConfig(
        name=name,
        value=value,
        read_only=name not in dynamic_configs.NAMES,
        is_default=source is ConfigSource.DEFAULT,
        source=source,
        synonyms=[ConfigSynonym(name, each, of) for of, each in values],
        type=type_,
        documentation=documentation,
    )
