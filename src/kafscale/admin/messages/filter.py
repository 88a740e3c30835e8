"""Filters records; batches are skipped where their bytes show that no record can match.

Invariants: `may_match` is never False for a batch with a matching record, and costs a fraction of
decoding it; `matches` decides. Text is searched in the bytes, and in the rendered text where that
differs. Case is ignored; non-ASCII text is compared as Unicode, which is slower.
"""

from kafscale.admin.messages import json_path
from kafscale.admin.messages.query import FilterSpec
from kafscale.admin.messages.renderer import PayloadRenderer
from kafscale.errors import InvalidRecordError, StoreUnavailableError
from kafscale.records import Record


class RecordFilter:
    """A compiled filter, with the renderers of keys and values."""

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

    def __init__(self, spec: FilterSpec, keys: PayloadRenderer, values: PayloadRenderer) -> None:
        self._keys = keys
        self._values = values
        self._key = spec.key
        self._text = spec.text.lower()
        self._needle = self._text.encode() if spec.text.isascii() else b""
        self._path = json_path.parse(spec.json_path) if spec.json_path else ()
        words = [step for step in self._path if not step.isdigit()]  # Numbers may be indexes.
        if json_path.is_plain_text(spec.json_equals):
            words.append(spec.json_equals)
        self._words = [word.encode() for word in words if _is_literal_in_json(word)]
        self._equals = spec.json_equals
        self._header = spec.header

    @property
    def matches_all(self) -> bool:
        return not (self._key or self._text or self._path or self._header)

    def may_match(self, data: bytes) -> bool:
        """False if no record in these bytes can match."""
        if self._header and self._header.encode() not in data:
            return False
        if self._key and self._keys.is_verbatim and self._key.encode() not in data:
            return False
        if self._needle and self._keys.is_verbatim and self._values.is_verbatim:
            return self._needle in data.lower()
        if self._path and self._values.is_verbatim:
            return b"\\u" in data or all(word in data for word in self._words)
        return True

    def matches(self, record: Record) -> bool:
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
        if self._keys.is_verbatim:
            return False
        return self._keys.render(key).text in {self._key, f'"{self._key}"'}

    def _has_text(self, record: Record) -> bool:
        return (
            self._contains_text(record.key, self._keys)
            or self._contains_text(record.value, self._values)
            or any(
                self._text in header.key.lower() or self._contains_text(header.value, None)
                for header in record.headers
            )
        )

    def _contains_text(self, payload: bytes | None, renderer: PayloadRenderer | None) -> bool:
        if not payload:
            return False
        if self._needle:
            if self._needle in payload.lower():
                return True
        elif self._text in payload.decode(errors="replace").lower():
            return True
        if renderer is None or renderer.is_verbatim:
            return False
        return self._text in renderer.render(payload).text.lower()

    def _has_field(self, record: Record) -> bool:
        if record.value is None:
            return False
        try:
            value = self._values.parse_json(record.value)
        except (InvalidRecordError, StoreUnavailableError):
            return False
        field = json_path.find(value, self._path)
        if field is json_path.MISSING:
            return False
        return not self._equals or json_path.equals(field, self._equals)


def _is_literal_in_json(word: str) -> bool:
    """True if JSON has no escape for it but that by code points."""
    return word.isprintable() and not set(word) & set('/"\\')
