"""What somebody wrote: one value with its place, and everything that is wrong with it.

Both sources, the file and the environment, return `RawValue`s and report their problems in the
same words. A problem names the setting, its place, what was wrong and what would be right; never a
secret.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from kafscale.config.schema import MASK, Setting


@dataclass(frozen=True)
class RawValue:
    """One value as somebody wrote it, and where."""

    setting: Setting
    raw: str | Sequence[str]
    origin: str

    def problem(self, reason: object) -> str:
        """The sentence that refuses this value."""
        path, origin = self.setting.path, self.origin
        return f"{path} ({origin}): {self._quoted()} {reason}; it takes {self.setting.type.takes}"

    def _quoted(self) -> str:
        if self.setting.secret:
            return MASK
        raw = self.raw if isinstance(self.raw, str) else ", ".join(self.raw)
        # A URL may carry a password even where none is taken.
        return '"' + re.sub(r"//[^/@]*@", f"//{MASK}@", raw) + '"'


@dataclass
class SourceValues:
    """What one source holds: values to read, weakest first, and problems found on the way."""

    values: list[RawValue] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def suggestion(name: str, known: Iterable[str], prefix: str = "") -> str:
    """What to write instead of a name that nobody declared; what all names share says nothing."""
    names = [word.removeprefix(prefix) for word in known]
    asked = name.removeprefix(prefix)
    # A name with too much in front is nearer to the bare one than to any that looks like it.
    bare = [word for word in names if asked.endswith(f"_{word}")]
    if nearest := bare or get_close_matches(asked, names, n=1):
        return f"did you mean {prefix}{nearest[0]}?"
    return "`kafscale config show` lists all settings"
