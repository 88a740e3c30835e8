r"""Parses `sasl.jaas.config`, in which Kafka's clients store a user name and a password.

>>> parse_jaas('org.apache.kafka.common.security.plain.PlainLoginModule required'
...            ' username="alice" password="say \\"friend\\"";')
{'username': 'alice', 'password': 'say "friend"'}
"""

import re
from typing import Final

_VALUE: Final = r""" "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' | [^\s;"']+ """
_OPTION: Final = re.compile(rf"\s+ (\w+) \s*=\s* ({_VALUE})", re.VERBOSE)
_ENTRY: Final = re.compile(
    r"\s* ([\w.$]+) \s+ (?:required|requisite|sufficient|optional)"
    rf" ((?: \s+ \w+ \s*=\s* (?:{_VALUE}) )*) \s*;\s*",
    re.VERBOSE | re.IGNORECASE,
)
_PASSWORD_MODULES: Final = frozenset({"PlainLoginModule", "ScramLoginModule"})
_OAUTH_MODULE: Final = "OAuthBearerLoginModule"


def parse_jaas(text: str) -> dict[str, str]:
    """Return user name and password, or nothing for tokens; raise `ValueError` otherwise."""
    entry = _ENTRY.fullmatch(text)
    if entry is None:
        # The message must not contain the text: it holds a password.
        raise ValueError('expected the form Module required username="..." password="...";')
    module = entry[1].rpartition(".")[2]
    options = {name: _unquote(value) for name, value in _OPTION.findall(entry[2])}
    if module in _PASSWORD_MODULES:
        return {name: options[name] for name in ("username", "password") if name in options}
    if module == _OAUTH_MODULE and not options:
        return {}
    if module == _OAUTH_MODULE:
        raise ValueError(
            "options of OAuthBearerLoginModule are not supported; name a file with a token:"
            " sasl.oauthbearer.token.endpoint.url=file:///path/of/token"
        )
    raise ValueError(f"the login module {module} is not supported")


def _unquote(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value[0] in "\"'" else value
