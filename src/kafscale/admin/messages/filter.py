"""Which records are wanted: whole batches are left out where their bytes show that none is.

The laws: `may_hold` is never false of a batch that holds a wanted record, but costs a fraction of
looking at the records; `keeps` decides. Text is looked for in what the bytes say by themselves,
and in what is shown of them where that is something else. Case does not matter; letters beyond
ASCII are compared as Unicode has them, at some cost.
"""

from kafscale.admin.messages import json_path
from kafscale.admin.messages.query import Filter
from kafscale.admin.messages.renderer import Lens
from kafscale.errors import InvalidRecordError, StoreUnavailableError
from kafscale.records import Record


class Sieve:
    """One filter, with the lenses through which keys and values are seen."""

    __slots__ = (
        "_equals",
        "_header",
        "_key",
        "_keys",
        "_needle",
        "_path",
        "_text",
        "_values",
        "_words",
    )

    def __init__(self, wanted: Filter, keys: Lens, values: Lens) -> None:
        self._keys = keys
        self._values = values
        self._key = wanted.key
        self._text = wanted.text.lower()
        self._needle = self._text.encode() if wanted.text.isascii() else b""
        self._path = json_path.parse(wanted.json_path) if wanted.json_path else ()
        words = [step for step in self._path if not step.isdigit()]  # Those may be indexes.
        if json_path.is_plain_text(wanted.json_equals):
            words.append(wanted.json_equals)
        self._words = [word.encode() for word in words if _is_said_by_its_letters(word)]
        self._equals = wanted.json_equals
        self._header = wanted.header

    @property
    def keeps_all(self) -> bool:
        return not (self._key or self._text or self._path or self._header)

    def may_hold(self, data: bytes) -> bool:
        """Whether the records that these bytes are of may hold one that is wanted."""
        if self._header and self._header.encode() not in data:
            return False
        if self._key and self._keys.shows_own_text and self._key.encode() not in data:
            return False
        if self._needle and self._keys.shows_own_text and self._values.shows_own_text:
            return self._needle in data.lower()
        if self._path and self._values.shows_own_text:
            return b"\\u" in data or all(word in data for word in self._words)
        return True

    def keeps(self, record: Record) -> bool:
        return (
            (not self._header or any(each.key == self._header for each in record.headers))
            and (not self._key or self._has_key(record))
            and (not self._text or self._has_text(record))
            and (not self._path or self._has_field(record))
        )

    def _has_key(self, record: Record) -> bool:
        key = record.key
        if key is None:
            return False
        if key == self._key.encode():
            return True
        if self._keys.shows_own_text:
            return False
        return self._keys.show(key).text in {self._key, f'"{self._key}"'}

    def _has_text(self, record: Record) -> bool:
        return (
            self._is_in(record.key, self._keys)
            or self._is_in(record.value, self._values)
            or any(
                self._text in header.key.lower() or self._is_in(header.value, None)
                for header in record.headers
            )
        )

    def _is_in(self, payload: bytes | None, lens: Lens | None) -> bool:
        if not payload:
            return False
        if self._needle:
            if self._needle in payload.lower():
                return True
        elif self._text in payload.decode(errors="replace").lower():
            return True
        if lens is None or lens.shows_own_text:
            return False
        return self._text in lens.show(payload).text.lower()

    def _has_field(self, record: Record) -> bool:
        if record.value is None:
            return False
        try:
            value = self._values.value(record.value)
        except (InvalidRecordError, StoreUnavailableError):
            return False
        found = json_path.find(value, self._path)
        if found is json_path.MISSING:
            return False
        return not self._equals or json_path.equals(found, self._equals)


def _is_said_by_its_letters(word: str) -> bool:
    """Whether JSON has no other way to say it, but for the numbers of its letters."""
    return word.isprintable() and not set(word) & set('/"\\')
