"""Raw values of settings, with their origin, and the error messages for them.

An error names the setting, its origin, what is wrong and what is valid; it never contains a secret.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from kafscale.config.schema import MASK, Setting


@dataclass(frozen=True)
class RawValue:
    """One value as it was written, and where."""

    setting: Setting
    raw: str | Sequence[str]
    origin: str

    def problem(self, reason: object) -> str:
        """The error message for this value."""
        path, origin = self.setting.path, self.origin
        return f"{path} ({origin}): {self._quoted()} {reason}; expected {self.setting.type.takes}"

    def _quoted(self) -> str:
        if self.setting.secret:
            return MASK
        raw = self.raw if isinstance(self.raw, str) else ", ".join(self.raw)
        # A URL may contain a password even if none is expected.
        return '"' + re.sub(r"//[^/@]*@", f"//{MASK}@", raw) + '"'


@dataclass
class SourceValues:
    """The values of one source, in ascending precedence, and the problems found."""

    values: list[RawValue] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def suggestion(name: str, known: Iterable[str], prefix: str = "") -> str:
    """Suggest a known name for an unknown one; `prefix` is common to all names."""
    names = [word.removeprefix(prefix) for word in known]
    unknown = name.removeprefix(prefix)
    # A name with an extra prefix is closest to the known name at its end.
    suffixes = [word for word in names if unknown.endswith(f"_{word}")]
    if nearest := suffixes or get_close_matches(unknown, names, n=1):
        return f"did you mean {prefix}{nearest[0]}?"
    return "`kafscale config show` lists all settings"
