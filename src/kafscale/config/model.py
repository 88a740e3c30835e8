"""`Config`: all settings in one immutable value, and the list of all settings.

Its representations for people and logs contain no secrets.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kafscale.config.schema import settings_of
from kafscale.config.sections.broker import Broker, Topics
from kafscale.config.sections.client import Client, Consumer, Mcp
from kafscale.config.sections.etcd import Etcd
from kafscale.config.sections.groups import Group, Offsets
from kafscale.config.sections.network import Network
from kafscale.config.sections.observability import Logging, Tracing
from kafscale.config.sections.operator import Operator
from kafscale.config.sections.s3 import S3
from kafscale.config.sections.security import Authorization, Control, Sasl, Tls
from kafscale.config.sections.storage import Cache, Compaction, Compression, Storage
from kafscale.config.sections.transactions import Transaction
from kafscale.config.sections.ui import Ui
from kafscale.net.address import ANY_ADDRESS, LOOPBACK

DEFAULT = "default"


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings by section; `Config()` is the embedded default."""

    broker: Broker = field(default_factory=Broker)
    network: Network = field(default_factory=Network)
    tls: Tls = field(default_factory=Tls)
    sasl: Sasl = field(default_factory=Sasl)
    authorization: Authorization = field(default_factory=Authorization)
    control: Control = field(default_factory=Control)
    s3: S3 = field(default_factory=S3)
    etcd: Etcd = field(default_factory=Etcd)
    storage: Storage = field(default_factory=Storage)
    cache: Cache = field(default_factory=Cache)
    consumer: Consumer = field(default_factory=Consumer)
    group: Group = field(default_factory=Group)
    offsets: Offsets = field(default_factory=Offsets)
    transaction: Transaction = field(default_factory=Transaction)
    topics: Topics = field(default_factory=Topics)
    compression: Compression = field(default_factory=Compression)
    compaction: Compaction = field(default_factory=Compaction)
    logging: Logging = field(default_factory=Logging)
    tracing: Tracing = field(default_factory=Tracing)
    operator: Operator = field(default_factory=Operator)
    ui: Ui = field(default_factory=Ui)
    mcp: Mcp = field(default_factory=Mcp)
    client: Client = field(default_factory=Client)

    origins: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Where each explicit setting was set: a variable, or a file and line."""

    def bind_address(self, host: str) -> str:
        """The address to listen on, for a host setting of a broker that may be empty."""
        return host or (ANY_ADDRESS if self.etcd.endpoints else LOOPBACK)

    def origin(self, path: str) -> str:
        return self.origins.get(path, DEFAULT)

    def with_values(self, values: Mapping[str, object]) -> "Config":
        """A copy with other values, by attribute, such as `topics.auto_create`."""
        sections: dict[str, dict[str, object]] = {}
        for attribute, value in values.items():
            section, _, name = attribute.partition(".")
            sections.setdefault(section, {})[name] = value
        changed = {
            section: replace(getattr(self, section), **fields)
            for section, fields in sections.items()
        }
        return replace(self, **changed)

    def effective(self) -> dict[str, Any]:
        """All settings by their keys in the file, with secrets masked, for the log at start."""
        tree: dict[str, Any] = {}
        for setting in SETTINGS:
            *groups, key = setting.path.split(".")
            branch = tree
            for group in groups:
                branch = branch.setdefault(group, {})
            branch[key] = setting.export(setting.value(self))
        return tree


SETTINGS = tuple(settings_of(Config))
BY_PATH = {setting.path: setting for setting in SETTINGS}
BY_VARIABLE = {variable: setting for setting in SETTINGS for variable in setting.variables}
GROUPS = frozenset(
    path.rsplit(".", depth)[0] for path in BY_PATH for depth in range(1, path.count(".") + 1)
)

CONFIG_FILE_VARIABLE = "KAFSCALE_CONFIG_FILE"
"""Names the configuration file; the only variable that is not a setting."""

ADDRESSES = {
    "KAFSCALE_BROKER_ADDR": (BY_PATH["broker.host"], BY_PATH["broker.port"]),
    "KAFSCALE_METRICS_ADDR": (BY_PATH["broker.metricsHost"], BY_PATH["broker.metricsPort"]),
    "KAFSCALE_CONTROL_ADDR": (BY_PATH["broker.controlHost"], BY_PATH["broker.controlPort"]),
}
"""Variables that set a host and a port at once, as `host:port`, or as `:port` for all addresses;
the variables of the single settings override them."""

OPTIONS = {
    "--listen": ADDRESSES["KAFSCALE_BROKER_ADDR"],
    "--namespace": (BY_PATH["s3.namespace"],),
    "--security-protocol": (BY_PATH["broker.securityProtocol"],),
    "--tls-cert-file": (BY_PATH["tls.certFile"],),
    "--tls-key-file": (BY_PATH["tls.keyFile"],),
}
"""Options of `kafscale broker` that set settings; the first one both parts of an address."""

VARIABLES = (CONFIG_FILE_VARIABLE, *ADDRESSES, *BY_VARIABLE)

assert len(BY_VARIABLE) == sum(len(setting.variables) for setting in SETTINGS)
assert len(VARIABLES) == len(set(VARIABLES))
