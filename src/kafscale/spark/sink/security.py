"""How the sink connects to brokers: the client settings, as settings of the Spark session.

    spark.kafscale.client.securityProtocol  SASL_SSL
    spark.kafscale.client.username          billing
    spark.kafscale.client.password          …

They have the names of Kafscale's settings (`client.username`). They are no options of the sink,
because Spark shows options in plans; settings named like a secret are redacted by Spark. Invariant:
no error contains a secret.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from kafscale.client.security import Security
from kafscale.config.schema import RawValue, settings_of
from kafscale.config.sections.client import Client
from kafscale.config.sections.security import ClientTls
from kafscale.errors import ConfigError

PREFIX: Final = "client."
SESSION_PREFIX: Final = "spark.kafscale."

_VARIABLES: Final = re.compile(r" \((KAFSCALE_\w+(, )?)+\)")
"""The environment variables of settings, which the sink does not read."""

_SETTINGS: Final = {
    each.path: each
    for each in settings_of(Client, PREFIX)
    if each.attribute.startswith(("security_", "sasl_", "username", "password", "token_", "tls."))
}


def security_of(own: Mapping[str, str]) -> Security:
    """Return the security settings; `own` are the session's, without their prefix."""
    values: dict[str, Any] = {}
    tls: dict[str, Any] = {}
    for path, text in own.items():
        if not path.startswith(PREFIX):
            continue
        setting = _SETTINGS.get(path)
        name = f"{SESSION_PREFIX}{path}"
        if setting is None:
            known = ", ".join(sorted(_SETTINGS))
            raise ConfigError(f"unknown setting {name}; known with that prefix: {known}")
        try:
            value = setting.read(text)
        except ValueError as error:
            raise ConfigError(RawValue(setting, text, name).problem(error)) from None
        group, _, field = setting.attribute.rpartition(".")
        (tls if group else values)[field] = value
    try:
        return Security.from_settings(Client(**values, tls=ClientTls(**tls)))
    except ConfigError as error:
        raise ConfigError(_in_the_session(str(error))) from None


def _in_the_session(text: str) -> str:
    """An error about settings, which says where the sink takes them from."""
    without_variables = _VARIABLES.sub("", text)
    return f"{without_variables.replace(PREFIX, f'{SESSION_PREFIX}{PREFIX}')} in the session"
