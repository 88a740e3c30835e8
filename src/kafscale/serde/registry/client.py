"""The client of a schema registry with Confluent's REST API, and a cache of prepared schemas.

Invariants: the schema of an ID never changes, so it is requested once. An unknown ID is an error of
the record, but an unavailable registry must stop the job instead of making valid records invalid.
Passwords and tokens are sent to the registry only, and are in no message and no `repr`. Redirects
to other servers are not followed: they would reach servers that only this machine can reach.
"""

import base64
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPMessage
from typing import IO, Final, Generic, TypeVar
from urllib import error as url_error
from urllib import parse, request

import msgspec

from kafscale.aio.backoff import Backoff
from kafscale.errors import ConfigError, InvalidRecordError, StoreUnavailableError
from kafscale.text.json import DECODE_ERRORS

ATTEMPTS_MAX: Final = 5
SCHEMAS_MAX: Final = 10_000
"""The size of the cache; further schemas are requested again."""

_BACKOFF_SECONDS: Final = 0.2
_TIMEOUT_SECONDS: Final = 10.0
_RESPONSE_BYTES_MAX: Final = 16 << 20
_REFERENCE_DEPTH_MAX: Final = 16
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_TOO_MANY_REQUESTS: Final = 429

Ready = TypeVar("Ready")


class UnknownSchemaError(InvalidRecordError):
    """A record names a schema that the registry does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryAccess:
    """The URL of a registry, and credentials: user and password, a token, or neither."""

    url: str
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        parts = parse.urlsplit(self.url)
        if parts.username is not None or parts.password is not None:
            raise ConfigError(
                "the registry URL may not contain a user or password: set them separately"
            )
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigError(f"the registry URL {self.url} must be http or https")
        if parts.query or parts.fragment:
            raise ConfigError("the registry URL may not have a query or a fragment")
        if self.token and (self.user or self.password):
            raise ConfigError("set a token or user and password for the registry, not both")

    def authorization(self) -> str | None:
        """Return the Authorization header."""
        if self.token:
            return f"Bearer {self.token}"
        if self.user or self.password:
            pair = base64.b64encode(f"{self.user}:{self.password}".encode())
            return f"Basic {pair.decode()}"
        return None


class RegisteredSchema(msgspec.Struct, frozen=True):
    """A schema with its references."""

    kind: str
    """AVRO, PROTOBUF or JSON."""

    text: str
    references: tuple["Reference", ...] = ()


class Reference(msgspec.Struct, frozen=True):
    """A referenced schema, by the name that the other schema uses."""

    name: str
    schema: RegisteredSchema


class _ReferenceResponse(msgspec.Struct):
    name: str
    subject: str
    version: int


class _SchemaResponse(msgspec.Struct):
    schema: str
    id: int | None = None
    schemaType: str | None = None  # noqa: N815
    references: list[_ReferenceResponse] | None = None


class Registry:
    """Requests schemas, and caches them by ID."""

    __slots__ = ("_access", "_attempts_max", "_by_id", "_opener", "_sleep", "_timeout_seconds")

    def __init__(
        self,
        access: RegistryAccess,
        *,
        sleep: Callable[[float], None] = time.sleep,
        attempts_max: int = ATTEMPTS_MAX,
        timeout_seconds: float = _TIMEOUT_SECONDS,
    ) -> None:
        """The defaults are for jobs; interactive callers should wait less."""
        self._access = access
        self._sleep = sleep
        self._attempts_max = attempts_max
        self._timeout_seconds = timeout_seconds
        self._opener = request.build_opener(_OwnRedirects)
        self._by_id: dict[int, RegisteredSchema] = {}

    def schema(self, schema_id: int) -> RegisteredSchema:
        """Return the schema with an ID; raise `UnknownSchemaError` if there is none."""
        known = self._by_id.get(schema_id)
        if known is None:
            response = self._request(f"/schemas/ids/{schema_id}")
            if response is None:
                raise UnknownSchemaError(f"schema {schema_id} is not in the registry")
            known = self._resolve(response, 0)
            if len(self._by_id) < SCHEMAS_MAX:
                self._by_id[schema_id] = known
        return known

    def latest(self, subject: str) -> RegisteredSchema:
        """Return the newest schema of a subject."""
        return self._resolve(self._request_latest(subject), 0)

    def latest_with_id(self, subject: str) -> tuple[int, RegisteredSchema]:
        """Return the newest schema of a subject, and its ID."""
        response = self._request_latest(subject)
        if response.id is None:
            raise ConfigError(f"the registry did not return the ID of subject {subject}")
        return response.id, self._resolve(response, 0)

    def _request_latest(self, subject: str) -> _SchemaResponse:
        response = self._request(_version_path(subject, "latest"))
        if response is None:
            raise ConfigError(f"the registry has no subject {subject}")
        return response

    def _resolve(self, response: _SchemaResponse, depth: int) -> RegisteredSchema:
        if depth > _REFERENCE_DEPTH_MAX:
            raise InvalidRecordError("the references of the schema are nested too deeply")
        references = []
        for reference in response.references or ():
            referenced = self._request(_version_path(reference.subject, str(reference.version)))
            if referenced is None:
                raise InvalidRecordError(
                    f"the schema refers to {reference.name}, which is not in the registry"
                )
            references.append(Reference(reference.name, self._resolve(referenced, depth + 1)))
        return RegisteredSchema(response.schemaType or "AVRO", response.schema, tuple(references))

    def _request(self, path: str) -> _SchemaResponse | None:
        """Request a schema; Protobuf in compiled form if the registry supports that."""
        response = self._get_with_retries(path)
        if response is None or response.schemaType != "PROTOBUF":
            return response
        try:
            return self._get_with_retries(f"{path}?format=serialized") or response
        except ConfigError:  # It does not support the parameter.
            return response

    def _get_with_retries(self, path: str) -> _SchemaResponse | None:
        """Return the response, or None for 404; retry temporary errors."""
        reason = ""
        backoff = Backoff(first_seconds=_BACKOFF_SECONDS)
        for attempt in range(self._attempts_max):
            if attempt:
                self._sleep(backoff.next_seconds())
            try:
                return msgspec.json.decode(self._get(path), type=_SchemaResponse)
            except url_error.HTTPError as error:
                error.close()
                if error.code == 404:
                    return None
                reason = f"HTTP status {error.code}"
                if error.code in _REDIRECTS:
                    reason = (
                        f"it redirects to another server ({error.code}); set the URL of that one"
                    )
                if error.code < 500 and error.code != _TOO_MANY_REQUESTS:
                    raise ConfigError(f"the registry at {self._access.url}: {reason}") from None
            except DECODE_ERRORS:
                reason = "the response is not a schema"
            except (OSError, HTTPException) as error:
                reason = f"cannot connect: {getattr(error, 'reason', None) or error}"
        raise StoreUnavailableError(f"the registry at {self._access.url}: {reason}")

    def _get(self, path: str) -> bytes:
        http_request = request.Request(  # noqa: S310 - the scheme was checked with the URL.
            self._access.url.rstrip("/") + path,
            headers={"Accept": "application/vnd.schemaregistry.v1+json, application/json"},
        )
        authorization = self._access.authorization()
        if authorization:
            http_request.add_header("Authorization", authorization)
        with self._opener.open(http_request, timeout=self._timeout_seconds) as response:
            content: bytes = response.read(_RESPONSE_BYTES_MAX)
        return content


class _OwnRedirects(request.HTTPRedirectHandler):
    """Follows redirects within the registry's own server only."""

    def redirect_request(  # noqa: PLR0917 - the signature of the standard library.
        self,
        req: request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> request.Request | None:
        before, after = parse.urlsplit(req.full_url), parse.urlsplit(newurl)
        if (before.scheme, before.netloc) != (after.scheme, after.netloc):
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _version_path(subject: str, version: str) -> str:
    return f"/subjects/{parse.quote(subject, safe='')}/versions/{version}"


class SchemaCache(Generic[Ready]):
    """Prepared schemas by ID.

    A known ID is requested once. An unknown ID is requested once per batch, however many records
    name it; by the next batch, the registry may know it.
    """

    __slots__ = ("_failed", "_prepare", "_ready", "_registry")

    def __init__(self, registry: Registry, prepare: Callable[[RegisteredSchema], Ready]) -> None:
        self._registry = registry
        self._prepare = prepare
        self._ready: dict[int, Ready] = {}
        self._failed: dict[int, str] = {}

    def begin_batch(self) -> None:
        self._failed.clear()

    def get(self, schema_id: int) -> Ready:
        """Return the prepared schema; raise `InvalidRecordError` if that is impossible."""
        ready = self._ready.get(schema_id)
        if ready is not None:
            return ready
        if schema_id not in self._failed:
            try:
                registered = self._registry.schema(schema_id)
            except InvalidRecordError as error:
                self._failed[schema_id] = str(error)
            else:
                return self._prepare_schema(schema_id, registered)
        raise InvalidRecordError(self._failed[schema_id])

    def _prepare_schema(self, schema_id: int, registered: RegisteredSchema) -> Ready:
        # The schema is not a setting of ours, so a ConfigError is an error of the record.
        try:
            ready = self._ready[schema_id] = self._prepare(registered)
        except (ConfigError, InvalidRecordError) as error:
            self._failed[schema_id] = f"schema {schema_id}: {error}"
            raise InvalidRecordError(self._failed[schema_id]) from error
        return ready
