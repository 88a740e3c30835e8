r"""How the name in a client's certificate becomes a principal: `ssl.principal.mapping.rules`.

    rules = PrincipalRules("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L,DEFAULT")
    rules.principal("CN=Duke,OU=ServiceUsers,O=Org")    # "duke"

A rule is `RULE:pattern/replacement/`, with an L or U behind it for a name in small or capital
letters; `DEFAULT` takes the whole name. Rules are separated by commas and tried in their order. A
slash inside of one is written as `\/`.

The law: what Kafka's SslPrincipalMapper makes of a name is made of it here. A pattern has to match
the whole name; then every place where it matches is replaced, which differs for patterns that are
content with less. In a replacement, `$1` is a group, and `\` takes away the meaning of what comes
next; a group that does not exist stands for itself. What would fail in Kafka when the first client
comes is refused here at the start. Patterns are Python's: named groups are written `(?P<name>...)`,
and `\p{...}` is not known. Pure.
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
    """What is done with a name that matches."""

    pattern: re.Pattern[str]
    replacement: tuple[str | int, ...]
    """Texts, and the numbers of groups."""
    letters: str

    def apply(self, name: str) -> str | None:
        if self.pattern.fullmatch(name) is None:
            return None
        result = self.pattern.sub(self._replaced, name)
        if self.letters == "L":
            return result.lower()
        return result.upper() if self.letters == "U" else result

    def _replaced(self, match: re.Match[str]) -> str:
        return "".join(
            part if isinstance(part, str) else match[part] or "" for part in self.replacement
        )


class PrincipalMapper:
    """The rules of a listener."""

    def __init__(self, text: str) -> None:
        """Raises `ConfigError` for what is no rule."""
        pieces = (match[1] for match in _SPLITTER.finditer(text.strip()))
        self._rules = [_parsed(piece) for piece in pieces if piece]

    def principal(self, name: str) -> str:
        """The user whom a name stands for; raises `AuthenticationError` where no rule knows."""
        for rule in self._rules:
            principal = name if rule is None else rule.apply(name)
            if principal is not None:
                return principal
        raise AuthenticationError(f"no rule of {SETTING} takes the name {name!r}")


def _parsed(piece: str) -> _Rule | None:
    """A rule; none is needed for the whole name."""
    if piece == "DEFAULT":
        return None
    found = _RULE.fullmatch(piece)
    if found is None:
        raise ConfigError(
            f"{SETTING}: {piece} is no rule; write DEFAULT or RULE:pattern/replacement/, with L or"
            " U at the end for small or capital letters"
        )
    try:
        pattern = re.compile(found[1])
    except re.error as error:
        raise ConfigError(f"{SETTING}: the pattern of {piece} is wrong: {error}") from None
    return _Rule(pattern, tuple(_tokens(piece, found[2], pattern)), found[3])


def _tokens(piece: str, replacement: str, pattern: re.Pattern[str]) -> list[str | int]:
    tokens: list[str | int] = []
    for match in _TOKEN.finditer(replacement):
        name, digits = match["name"], match["digits"]
        if match["stray"] or (name and name not in pattern.groupindex):
            raise ConfigError(
                f"{SETTING}: the replacement of {piece} has a $ that names no group; write \\$"
            )
        if name:
            tokens.append(pattern.groupindex[name])
        elif digits:
            tokens.extend(_reference(piece, digits, pattern.groups))
        else:
            tokens.append(match["literal"] or match["text"])
    return tokens


def _reference(piece: str, digits: str, groups: int) -> list[str | int]:
    """The group that digits name; as many of them as name one, the others are text."""
    if int(digits[0]) > groups:
        if not groups:
            raise ConfigError(
                f"{SETTING}: {piece} replaces ${digits}, but its pattern has no (...)"
            )
        return [f"${digits}"]
    length = 1
    while length < len(digits) and int(digits[: length + 1]) <= groups:
        length += 1
    return [int(digits[:length]), digits[length:]]
