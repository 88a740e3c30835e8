r"""`PrincipalMapper`: maps certificate subjects to principals (`ssl.principal.mapping.rules`).

    mapper = PrincipalMapper("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L,DEFAULT")
    mapper.principal("CN=Duke,OU=ServiceUsers,O=Org")    # "duke"

A rule is `RULE:pattern/replacement/`, optionally followed by L or U for lower or upper case;
`DEFAULT` uses the whole subject. Rules are separated by commas and tried in order. A slash in a
rule is written as `\/`.

The result is that of Kafka's SslPrincipalMapper. A pattern must match the whole subject; then all
its matches are replaced, which differs for lazy patterns. In a replacement, `$1` is a group, and
`\` escapes the next character; a group that does not exist is literal text. Rules that would fail
in Kafka at the first connection are rejected at start. Patterns are Python's: named groups are
written `(?P<name>...)`, and `\p{...}` is not supported. Pure.
"""

import re
from typing import Final, NamedTuple

from kafscale.errors import AuthenticationError, ConfigError

SETTING: Final = "tls.principalMappingRules"

_PART = r"(?:\\.|[^\\/])*"
_RULE: Final = re.compile(rf"RULE:({_PART})/({_PART})/([LU]?)", re.ASCII)
_SPLITTER: Final = re.compile(rf"\s*(DEFAULT|{_RULE.pattern}.*?|.*?)\s*(?:,\s*|$)", re.ASCII)
_TOKEN: Final = re.compile(
    r"\\(?P<literal>.)|\$\{(?P<name>\w+)\}|\$(?P<digits>\d+)|(?P<stray>\$)|(?P<text>[^\\$]+)",
    re.ASCII | re.DOTALL,
)


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    replacement: tuple[str | int, ...]
    """Texts and group numbers."""
    case: str

    def apply(self, name: str) -> str | None:
        if self.pattern.fullmatch(name) is None:
            return None
        result = self.pattern.sub(self._replaced, name)
        if self.case == "L":
            return result.lower()
        return result.upper() if self.case == "U" else result

    def _replaced(self, match: re.Match[str]) -> str:
        return "".join(
            part if isinstance(part, str) else match[part] or "" for part in self.replacement
        )


class PrincipalMapper:
    """The mapping rules of a listener."""

    def __init__(self, text: str) -> None:
        """Raises `ConfigError` for an invalid rule."""
        rule_texts = (match[1] for match in _SPLITTER.finditer(text.strip()))
        self._rules = [_parsed(rule_text) for rule_text in rule_texts if rule_text]

    def principal(self, name: str) -> str:
        """The user name of a subject; raises `AuthenticationError` if no rule matches."""
        for rule in self._rules:
            principal = name if rule is None else rule.apply(name)
            if principal is not None:
                return principal
        raise AuthenticationError(f"no rule of {SETTING} matches the certificate subject {name!r}")


def _parsed(rule_text: str) -> _Rule | None:
    """Parse a rule; None is the `DEFAULT` rule."""
    if rule_text == "DEFAULT":
        return None
    match = _RULE.fullmatch(rule_text)
    if match is None:
        raise ConfigError(
            f"{SETTING}: {rule_text} is not a valid rule; expected DEFAULT or"
            " RULE:pattern/replacement/, optionally followed by L or U for lower or upper case"
        )
    try:
        pattern = re.compile(match[1])
    except re.error as error:
        raise ConfigError(f"{SETTING}: the pattern of {rule_text} is invalid: {error}") from None
    return _Rule(pattern, tuple(_tokens(rule_text, match[2], pattern)), match[3])


def _tokens(rule_text: str, replacement: str, pattern: re.Pattern[str]) -> list[str | int]:
    tokens: list[str | int] = []
    for match in _TOKEN.finditer(replacement):
        name, digits = match["name"], match["digits"]
        if match["stray"] or (name and name not in pattern.groupindex):
            raise ConfigError(
                f"{SETTING}: the replacement of {rule_text} has a $ without a group; write \\$"
            )
        if name:
            tokens.append(pattern.groupindex[name])
        elif digits:
            tokens.extend(_reference(rule_text, digits, pattern.groups))
        else:
            tokens.append(match["literal"] or match["text"])
    return tokens


def _reference(rule_text: str, digits: str, groups: int) -> list[str | int]:
    """The group that digits refer to; further digits are literal text."""
    if int(digits[0]) > groups:
        if not groups:
            raise ConfigError(
                f"{SETTING}: {rule_text} uses ${digits}, but its pattern has no group"
            )
        return [f"${digits}"]
    length = 1
    while length < len(digits) and int(digits[: length + 1]) <= groups:
        length += 1
    return [int(digits[:length]), digits[length:]]
