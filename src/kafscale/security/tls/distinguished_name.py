r"""Formats the subject of a certificate as Java does, for Kafka's mapping rules and ACLs.

    subject(certificate)    # "CN=alice,OU=billing,O=Example\, Inc.,C=DE"

The format is that of `X500Principal.getName()` in Java 17: RFC 2253, with the most specific part
first, attributes without a keyword in RFC 2253 (such as e-mail addresses) as OIDs, and all texts
decoded as UTF-8. Only certificates that OpenSSL has accepted are passed in, so that the DER needs
no validation. Pure.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_VERSION_TAG: Final = 0xA0
_TEXT_TAGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString and BMPString."""
_ESCAPES: Final = str.maketrans({char: f"\\{char}" for char in ',=+<>#;"\\'} | {"\0": "\\00"})
_BLANKS: Final = " \r"


class _Element(NamedTuple):
    """A DER element."""

    tag: int
    content: bytes
    whole: bytes
    """Tag, length and content."""


def subject(certificate: bytes) -> str:
    """The subject of a certificate (DER)."""
    parts = list(_elements(_content(_content(certificate))))
    if parts[0].tag == _VERSION_TAG:
        del parts[0]
    _serial, _algorithm, _issuer, _validity, name, *_ = parts
    return format_name(name.content)


def format_name(name: bytes) -> str:
    """Format a name, given as the content of its DER."""
    parts = [
        "+".join(_attribute(attribute.content) for attribute in _elements(part.content))
        for part in _elements(name)
    ]
    return ",".join(reversed(parts))


def _attribute(attribute: bytes) -> str:
    oid, value = _elements(attribute)
    number = _decode_oid(oid.content)
    keyword = _KEYWORDS.get(number)
    if keyword is None or value.tag not in _TEXT_TAGS:
        return f"{keyword or number}=#{value.whole.hex()}"
    return f"{keyword}={_escaped(value.content.decode(errors='replace'))}"


def _escaped(text: str) -> str:
    r"""Escape special characters with a backslash.

    >>> print(_escaped(" a, b"))
    \ a\, b
    """
    escaped = text.translate(_ESCAPES)
    start = len(escaped) - len(escaped.lstrip(_BLANKS))
    end = max(len(escaped.rstrip(_BLANKS)), start)
    before, after = (
        "".join(f"\\{blank}" for blank in blanks) for blanks in (escaped[:start], escaped[end:])
    )
    return before + escaped[start:end] + after


def _decode_oid(oid: bytes) -> str:
    """Decode an object identifier.

    >>> _decode_oid(bytes.fromhex("550403"))
    '2.5.4.3'
    """
    numbers, number = [], 0
    for byte in oid:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))


def _content(element: bytes) -> bytes:
    """The content of the first element."""
    return next(_elements(element)).content


def _elements(data: bytes) -> Iterator[_Element]:
    """Iterate over consecutive elements."""
    position = 0
    while position < len(data):
        tag, size = data[position], data[position + 1]
        start = position + 2
        if size & 0x80:
            digits = size & 0x7F
            size = int.from_bytes(data[start : start + digits])
            start += digits
        yield _Element(tag, data[start : start + size], data[position : start + size])
        position = start + size
