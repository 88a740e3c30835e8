"""Difficult certificate subjects, and how Java formats them.

The expected values are from Java 17: `new X500Principal(der).getName()`. A conformance test
verifies them if Java is installed.
"""

CN = "2.5.4.3"
UTF8, PRINTABLE, T61, IA5, GENERAL, BMP, UNIVERSAL, NUMERIC, OCTETS = (
    0x0C,
    0x13,
    0x14,
    0x16,
    0x1B,
    0x1E,
    0x1C,
    0x12,
    0x04,
)


def element(tag: int, content: bytes) -> bytes:
    """A piece of DER."""
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    digits = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes([tag, 0x80 | len(digits)]) + digits + content


def attribute(oid: str, value: bytes, tag: int = UTF8) -> bytes:
    first, second, *others = map(int, oid.split("."))
    numbers = b"".join(map(_base_128, [40 * first + second, *others]))
    return element(0x30, element(0x06, numbers) + element(tag, value))


def name(*parts: bytes | list[bytes]) -> bytes:
    """The content of a name that has these parts, each of one attribute or of several."""
    return b"".join(
        element(0x31, part if isinstance(part, bytes) else b"".join(part)) for part in parts
    )


def _base_128(number: int) -> bytes:
    groups = [number & 0x7F]
    while number := number >> 7:
        groups.append(number & 0x7F | 0x80)
    return bytes(reversed(groups))


EMAIL = "1.2.840.113549.1.9.1"
ORDINARY = {
    "CN=alice": name(attribute(CN, b"alice")),
    f"{EMAIL}=#16056140622e63,OU=b+CN=a,O=Y,C=US": name(
        attribute("2.5.4.6", b"US", PRINTABLE),
        attribute("2.5.4.10", b"Y"),
        [attribute("2.5.4.11", b"b"), attribute(CN, b"a")],
        attribute(EMAIL, b"a@b.c", IA5),
    ),
    "": b"",
}
KEYWORDS = {
    f"{keyword}=x": name(attribute(oid, b"x"))
    for keyword, oid in {
        "CN": CN,
        "C": "2.5.4.6",
        "L": "2.5.4.7",
        "ST": "2.5.4.8",
        "STREET": "2.5.4.9",
        "O": "2.5.4.10",
        "OU": "2.5.4.11",
        "UID": "0.9.2342.19200300.100.1.1",
        "DC": "0.9.2342.19200300.100.1.25",
    }.items()
}
NUMBERS = {
    f"{oid}=#0c0178": name(attribute(oid, b"x"))
    for oid in ("2.5.4.4", "2.5.4.5", "2.5.4.12", "2.5.4.42", "2.5.4.46", EMAIL, "2.999.3.70000")
}
TYPES = {
    "CN=12\\, 3": name(attribute(CN, b"12, 3", PRINTABLE)),
    "CN=12\\, 4": name(attribute(CN, b"12, 4", GENERAL)),
    "CN=\ufffdt\ufffd": name(attribute(CN, b"\xe9t\xe9", T61)),
    "CN=\\00A\\00\\,\\00b": name(attribute(CN, "A,b".encode("utf-16-be"), BMP)),
    "CN=#1c080000004100000062": name(attribute(CN, "Ab".encode("utf-32-be"), UNIVERSAL)),
    "CN=#120531322c2033": name(attribute(CN, b"12, 3", NUMERIC)),
    "CN=#040531322c2033": name(attribute(CN, b"12, 3", OCTETS)),
    "CN=bad\ufffd\ufffd": name(attribute(CN, b"bad\xff\xc3")),
    f"CN={'x' * 300}": name(attribute(CN, b"x" * 300)),
    f"1.2.3=#0c82012c{'79' * 300}": name(attribute("1.2.3", b"y" * 300)),
}
TEXTS = {
    "": "",
    " ": "\\ ",
    "  a  ": "\\ \\ a\\ \\ ",
    "#a": "\\#a",
    "a#b": "a\\#b",
    "a=b": "a\\=b",
    "a+b": "a\\+b",
    "a,b": "a\\,b",
    "a;b": "a\\;b",
    "<a>": "\\<a\\>",
    '"q"': '\\"q\\"',
    "back\\slash": "back\\\\slash",
    "a\0b": "a\\00b",
    "a\ab": "a\ab",
    "\ra\r": "\\\ra\\\r",
    "\na\n": "\na\n",
    "\ta\t": "\ta\t",
    "ümläut ✓": "ümläut ✓",
    "😀": "😀",
    "a/b": "a/b",
    "it's": "it's",
    " , ": "\\ \\,\\ ",
    " \\ ": "\\ \\\\\\ ",
    "a\\": "a\\\\",
    "\u00a0x\u00a0": "\u00a0x\u00a0",
    " #a": "\\ \\#a",
}
NAMES = {
    **ORDINARY,
    **KEYWORDS,
    **NUMBERS,
    **TYPES,
    **{f"CN={written}": name(attribute(CN, text.encode())) for text, written in TEXTS.items()},
}
"""How Java writes it, and what the DER of the name holds."""
