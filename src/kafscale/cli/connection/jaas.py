r"""`sasl.jaas.config`: the line in which Kafka's clients keep a user and a password.

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
_OF_PASSWORDS: Final = frozenset({"PlainLoginModule", "ScramLoginModule"})
_OF_TOKENS: Final = "OAuthBearerLoginModule"


def parse_jaas(text: str) -> dict[str, str]:
    """The user and the password; nothing, for tokens. `ValueError` for anything else."""
    entry = _ENTRY.fullmatch(text)
    if entry is None:
        # The text is not shown: there is a password in it.
        raise ValueError('it is not of the form Module required username="..." password="...";')
    module = entry[1].rpartition(".")[2]
    options = {name: _unquoted(value) for name, value in _OPTION.findall(entry[2])}
    if module in _OF_PASSWORDS:
        return {name: options[name] for name in ("username", "password") if name in options}
    if module == _OF_TOKENS and not options:
        return {}
    if module == _OF_TOKENS:
        raise ValueError(
            "tokens are not made here; name a file with one by"
            " sasl.oauthbearer.token.endpoint.url=file:///path/of/token"
        )
    raise ValueError(f"{module} cannot be used here")


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value[0] in "\"'" else value
