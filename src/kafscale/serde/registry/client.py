"""The client of a schema registry that speaks Confluent's REST interface.

The laws: what an id means never changes, so it is asked for once; an id that the registry does not
know is the record's fault, but a registry that does not answer is nobody's, and must stop the job
rather than make bad records of good ones. Passwords and tokens are sent to the registry alone: they
are in no message, no representation, and follow no redirect.
"""

import base64
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Final
from urllib import error as url_error
from urllib import parse, request

import msgspec

from kafscale.errors import ConfigError, InvalidRecordError, StoreUnavailableError

ATTEMPTS_MAX: Final = 5
SCHEMAS_MAX: Final = 10_000
"""How many are remembered; a registry that has more is asked again."""

_BACKOFF_SECONDS: Final = 0.2
_TIMEOUT_SECONDS: Final = 10.0
_ANSWER_BYTES_MAX: Final = 16 << 20
_REFERENCE_DEPTH_MAX: Final = 16
_TOO_MANY_REQUESTS: Final = 429


class UnknownSchemaError(InvalidRecordError):
    """A record names a schema that the registry does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryAccess:
    """Where a registry is, and as whom to ask it: with user and password, a token, or neither."""

    url: str
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        parts = parse.urlsplit(self.url)
        if parts.username is not None or parts.password is not None:
            raise ConfigError("the registry's URL may not hold a user or a password: set them")
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigError(f"the registry's URL {self.url} is not one of http or https")
        if parts.query or parts.fragment:
            raise ConfigError("the registry's URL may not have a query or a fragment")
        if self.token and (self.user or self.password):
            raise ConfigError("the registry takes a token, or user and password, but not both")

    def authorization(self) -> str | None:
        """The header that says who is asking."""
        if self.token:
            return f"Bearer {self.token}"
        if self.user or self.password:
            pair = base64.b64encode(f"{self.user}:{self.password}".encode())
            return f"Basic {pair.decode()}"
        return None


class RegisteredSchema(msgspec.Struct, frozen=True):
    """A schema with all that it refers to."""

    kind: str
    """AVRO, PROTOBUF or JSON."""

    text: str
    references: tuple["Reference", ...] = ()


class Reference(msgspec.Struct, frozen=True):
    """Another schema, under the name by which the first one calls it."""

    name: str
    schema: RegisteredSchema


class _ReferenceAnswer(msgspec.Struct):
    name: str
    subject: str
    version: int


class _SchemaAnswer(msgspec.Struct):
    schema: str
    id: int | None = None
    schemaType: str | None = None  # noqa: N815
    references: list[_ReferenceAnswer] | None = None


class Registry:
    """Asks for schemas, and remembers those that it was told."""

    __slots__ = ("_access", "_attempts_max", "_by_id", "_opener", "_sleep", "_timeout_seconds")

    def __init__(
        self,
        access: RegistryAccess,
        *,
        sleep: Callable[[float], None] = time.sleep,
        attempts_max: int = ATTEMPTS_MAX,
        timeout_seconds: float = _TIMEOUT_SECONDS,
    ) -> None:
        """Jobs have the patience that is the default; where somebody waits, less is better."""
        self._access = access
        self._sleep = sleep
        self._attempts_max = attempts_max
        self._timeout_seconds = timeout_seconds
        self._opener = request.build_opener()
        self._by_id: dict[int, RegisteredSchema] = {}

    def schema(self, schema_id: int) -> RegisteredSchema:
        """The schema with this id; raises an error about the record if there is none."""
        known = self._by_id.get(schema_id)
        if known is None:
            answer = self._look_up(f"/schemas/ids/{schema_id}")
            if answer is None:
                raise UnknownSchemaError(f"schema {schema_id} is not in the registry")
            known = self._resolved(answer, 0)
            if len(self._by_id) < SCHEMAS_MAX:
                self._by_id[schema_id] = known
        return known

    def latest(self, subject: str) -> RegisteredSchema:
        """The newest schema of a subject."""
        return self._resolved(self._look_up_latest(subject), 0)

    def latest_with_id(self, subject: str) -> tuple[int, RegisteredSchema]:
        """The same, and the id by which values name it."""
        answer = self._look_up_latest(subject)
        if answer.id is None:
            raise ConfigError(f"the registry does not say which id subject {subject} has")
        return answer.id, self._resolved(answer, 0)

    def _look_up_latest(self, subject: str) -> _SchemaAnswer:
        answer = self._look_up(_version_path(subject, "latest"))
        if answer is None:
            raise ConfigError(f"the registry has no subject {subject}")
        return answer

    def _resolved(self, answer: _SchemaAnswer, depth: int) -> RegisteredSchema:
        if depth > _REFERENCE_DEPTH_MAX:
            raise InvalidRecordError("its schema refers to others without end")
        references = []
        for reference in answer.references or ():
            found = self._look_up(_version_path(reference.subject, str(reference.version)))
            if found is None:
                raise InvalidRecordError(
                    f"its schema refers to {reference.name}, which is not in the registry"
                )
            references.append(Reference(reference.name, self._resolved(found, depth + 1)))
        return RegisteredSchema(answer.schemaType or "AVRO", answer.schema, tuple(references))

    def _look_up(self, path: str) -> _SchemaAnswer | None:
        """What is there, Protobuf compiled if the registry can do that, so that we need not."""
        answer = self._ask(path)
        if answer is None or answer.schemaType != "PROTOBUF":
            return answer
        try:
            return self._ask(f"{path}?format=serialized") or answer
        except ConfigError:  # It does not know the word.
            return answer

    def _ask(self, path: str) -> _SchemaAnswer | None:
        """The answer, None if it is that there is no such thing; tries again while that helps."""
        reason = ""
        for attempt in range(self._attempts_max):
            if attempt:
                self._sleep(_BACKOFF_SECONDS * 2 ** (attempt - 1))
            try:
                return msgspec.json.decode(self._get(path), type=_SchemaAnswer)
            except url_error.HTTPError as error:
                error.close()
                if error.code == 404:
                    return None
                reason = f"it answers {error.code}"
                if error.code < 500 and error.code != _TOO_MANY_REQUESTS:
                    raise ConfigError(f"the registry at {self._access.url}: {reason}") from None
            except (msgspec.MsgspecError, UnicodeDecodeError):
                reason = "it answers with something that is no schema"
            except (OSError, HTTPException) as error:
                reason = f"it cannot be reached: {getattr(error, 'reason', None) or error}"
        raise StoreUnavailableError(f"the registry at {self._access.url}: {reason}")

    def _get(self, path: str) -> bytes:
        asked = request.Request(  # noqa: S310 - the scheme was checked with the URL.
            self._access.url.rstrip("/") + path,
            headers={"Accept": "application/vnd.schemaregistry.v1+json, application/json"},
        )
        authorization = self._access.authorization()
        if authorization:
            asked.add_unredirected_header("Authorization", authorization)
        with self._opener.open(asked, timeout=self._timeout_seconds) as answer:
            content: bytes = answer.read(_ANSWER_BYTES_MAX)
        return content


def _version_path(subject: str, version: str) -> str:
    return f"/subjects/{parse.quote(subject, safe='')}/versions/{version}"
