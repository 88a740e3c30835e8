"""Schemas in the style of Spark's DDL: `id long, tags array<string>, at timestamp`.

Invariants: `parse` returns the schema that `render` was given; names are case-sensitive, everything
else is not. A name with other characters than letters, digits and underscores must be in
backquotes, as in Spark. `not null` restricts values, not columns: see `base`.
"""

import re
from collections.abc import Callable
from typing import Final, NoReturn

import pyarrow as pa

from kafscale.errors import ConfigError
from kafscale.spark.values.base import TIMESTAMP, list_of

_NAMED: Final = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "tinyint": pa.int8(),
    "short": pa.int16(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
}
_DECIMAL_DIGITS_MAX: Final = 38
_DEPTH_MAX: Final = 50
_TOKEN: Final = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|(\w+)|([<>(),:]))")


def parse(text: str) -> pa.Schema:
    """Parse a schema.

    >>> parse("id long not null, price decimal(10,2)").names
    ['id', 'price']
    """
    parser = _Parser(text)
    fields = parser.fields()
    parser.end()
    return pa.schema(fields)


def render(schema: pa.Schema) -> str:
    """Return the text of a schema; all names are in backquotes.

    >>> render(pa.schema([("id", pa.int64()), ("a b", pa.list_(pa.struct([("c", pa.string())])))]))
    '`id` long, `a b` array<struct<`c`: string>>'
    """
    return ", ".join(_render_field(field, " ") for field in schema)


# --- parsing --------------------------------------------------------------------------------------


class _Parser:
    """A recursive descent parser, with a method for each rule."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = 0
        self._depth = 0
        self._compounds: dict[str, Callable[[], pa.DataType]] = {
            "array": self._array,
            "map": self._map,
            "struct": self._struct,
            "decimal": self._decimal,
            "numeric": self._decimal,
        }

    def fields(self) -> list[pa.Field]:
        fields = [self._field()]
        while self._accept(","):
            fields.append(self._field())
        names = [field.name for field in fields]
        for name in names:
            if names.count(name) > 1:
                _fail(f"duplicate field {name}")
        return fields

    def end(self) -> None:
        if self._peek():
            _fail(f"unexpected {self._peek()}")

    def _field(self) -> pa.Field:
        name = self._take()
        if name.startswith("`"):
            name = name[1:-1].replace("``", "`")
        elif not re.fullmatch(r"\w+", name):
            _fail(f"expected a name, not {name}")
        self._accept(":")
        type_ = self._type()
        is_required = self._accept("not")
        if is_required:
            self._expect("null")
        return pa.field(name, type_, nullable=not is_required)

    def _type(self) -> pa.DataType:
        word = self._take()
        named = _NAMED.get(word.lower())
        if named is not None:
            return named
        compound = self._compounds.get(word.lower())
        if compound is None:
            _fail(f"unknown type {word}")
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            _fail(f"types are nested more than {_DEPTH_MAX} deep")
        type_ = compound()
        self._depth -= 1
        return type_

    def _array(self) -> pa.DataType:
        self._expect("<")
        element = self._type()
        self._expect(">")
        return list_of(element)

    def _map(self) -> pa.DataType:
        self._expect("<")
        if self._take().lower() != "string":
            _fail("map keys must be strings")
        self._expect(",")
        item = self._type()
        self._expect(">")
        return pa.map_(pa.string(), item)

    def _struct(self) -> pa.DataType:
        self._expect("<")
        fields = self.fields()
        self._expect(">")
        return pa.struct(fields)

    def _decimal(self) -> pa.DataType:
        precision, scale = 10, 0  # As in Spark.
        if self._accept("("):
            precision = self._number()
            if self._accept(","):
                scale = self._number()
            self._expect(")")
        if not 1 <= precision <= _DECIMAL_DIGITS_MAX or scale > precision:
            _fail(f"invalid type decimal({precision},{scale})")
        return pa.decimal128(precision, scale)

    def _number(self) -> int:
        word = self._take()
        if not re.fullmatch("[0-9]{1,3}", word):
            _fail(f"expected a number, not {word}")
        return int(word)

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        if not token:
            _fail("unexpected end")
        self._next += 1
        return token

    def _accept(self, word: str) -> bool:
        matches = self._peek().lower() == word
        self._next += matches
        return matches

    def _expect(self, word: str) -> None:
        token = self._take()
        if token.lower() != word:
            _fail(f"expected {word}, not {token}")


def _tokens(text: str) -> list[str]:
    tokens = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            _fail(f"unexpected {text[position:end].lstrip()[:20]}")
        tokens.append(match[match.lastindex or 0])
        position = match.end()
    return tokens


def _fail(reason: str) -> NoReturn:
    raise ConfigError(f"invalid schema: {reason}")


# --- rendering ------------------------------------------------------------------------------------

_NAMES: Final = {type_: name for name, type_ in reversed(_NAMED.items())} | {
    pa.large_string(): "string",
    pa.large_binary(): "binary",
}


def _render_field(field: pa.Field, separator: str) -> str:
    name = field.name.replace("`", "``")
    restriction = "" if field.nullable else " not null"
    return f"`{name}`{separator}{_render_type(field.type)}{restriction}"


def _render_type(type_: pa.DataType) -> str:
    if pa.types.is_struct(type_):
        return f"struct<{', '.join(_render_field(field, ': ') for field in type_)}>"
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"array<{_render_type(type_.value_type)}>"
    if pa.types.is_map(type_) and type_.key_type == pa.string():
        return f"map<string, {_render_type(type_.item_type)}>"
    if pa.types.is_decimal128(type_):
        return f"decimal({type_.precision},{type_.scale})"
    name = _NAMES.get(type_)
    if name is None:
        raise ConfigError(f"the type {type_} cannot be part of a schema")
    return name
