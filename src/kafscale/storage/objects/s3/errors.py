"""Translates errors of the S3 client.

The client has few error types and puts the rest into its message, so this module parses the
message: the HTTP status, and the code and message of the response body. Invariants: transient
errors become `StoreUnavailableError`, others fail at once. Only the parsed fields are passed on,
because the rest of a response may contain data that signed the request. Errors say what to do.
"""

import html
import re
from typing import Final

from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from kafscale.errors import (
    ObjectChangedError,
    ObjectExistsError,
    ObjectNotFoundError,
    OperatingError,
    StoreUnavailableError,
)

CLIENT_ERRORS: Final = (BaseError, FileNotFoundError)
"""All errors that obstore raises for failed requests."""

_STATUS: Final = re.compile(r"status code: (\d{3})")
_CODE: Final = re.compile(r"<Code>([\w.]+)</Code>")
_MESSAGE: Final = re.compile(r"<Message>([^<]*)</Message>")
_TRANSPORT: Final = re.compile(r"HttpError \{\s*kind: (\w+)")
_DETAIL: Final = re.compile(
    r'(?:message|error): "([^"]*)"|Invalid(?:Certificate|Message)\(\s*(\w+)|(IncompleteMessage)'
)
_NO_KEYS: Final = re.compile(r"credential provider: (\w+): (.*)")
_BARE_REDIRECT: Final = "Received redirect without LOCATION"

_READS: Final = {"get", "head"}
_MISSING_OBJECT: Final = {"", "NoSuchKey", "NotFound"}
_PASSING_STATUSES: Final = {408, 409, 425, 429, 500, 502, 503, 504}
_PASSING_CODES: Final = {
    "RequestTimeout",
    "SlowDown",
    "ServiceUnavailable",
    "InternalError",
    # Expired keys will be refreshed.
    "ExpiredToken",
}

_OTHER_REGION: Final = "the bucket is in another region: set s3.region to the bucket's"
_OTHER_KEYS: Final = "check the credentials (s3.credentialSource, s3.accessKey, s3.secretKey)"
_KMS: Final = "check s3.kmsKeyArn, and that the credentials may use that key"
_ADVICE: Final = {
    "NoSuchBucket": "create the bucket or set s3.createBucket to true, or correct s3.bucket",
    "PermanentRedirect": _OTHER_REGION,
    "AuthorizationHeaderMalformed": _OTHER_REGION,
    "IllegalLocationConstraintException": _OTHER_REGION,
    "AccessDenied": "allow these credentials s3:ListBucket on the bucket, and s3:GetObject, "
    "s3:PutObject and s3:DeleteObject on its objects",
    "InvalidAccessKeyId": _OTHER_KEYS,
    "XAdminUserNotFound": _OTHER_KEYS,
    "SignatureDoesNotMatch": _OTHER_KEYS,
    "InvalidToken": _OTHER_KEYS,
    "ExpiredToken": "the credentials have expired: provide new ones",
    "RequestTimeTooSkewed": "set the clock of this machine",
    "KMS.NotFoundException": _KMS,
    "KMS.DisabledException": _KMS,
    "KMS.KMSInvalidStateException": _KMS,
    "InvalidBucketName": "correct s3.bucket",
    "NotImplemented": "this server lacks a feature that Kafscale needs; it may be too old",
}

_STATUS_ADVICE: Final = {
    400: "check s3.endpoint: it must be that of an S3 server, with http or https as it expects",
    401: _OTHER_KEYS,
    403: _OTHER_KEYS,
    404: "check s3.endpoint: it must be that of an S3 server, without the bucket's name",
}
"""For listings, the first requests of a broker, if the code of the response is not known."""

_TLS: Final = "the server does not speak TLS: s3.endpoint must begin with http://"
_CERTIFICATE: Final = (
    "the server's certificate is not trusted, or is for another host name; add its CA to those of "
    "the system, or name a file with it in SSL_CERT_FILE"
)
_TRANSPORT_ADVICE: Final = {
    "dns error": "the server's name cannot be resolved: check s3.endpoint, s3.region and, if it is "
    "false, s3.pathStyle",
    "ConnectionRefused": "check s3.endpoint, and that the server runs",
    "IncompleteMessage": "the server closed the connection; if it expects TLS, s3.endpoint must "
    "begin with https://",
    "InvalidContentType": _TLS,
    "InvalidCertificate": _CERTIFICATE,
}
_PERMANENT: Final = (_TLS, _CERTIFICATE)


class RangeBeyondEndError(OperatingError):
    """A range that begins after the object's end; used only inside this package."""


class MissingBucketError(OperatingError):
    """The bucket does not exist; it may be created."""


def translate(verb: str, key: str, error: Exception) -> OperatingError:
    """Translate an error of the client."""
    text = str(error)
    status = int(_first(_STATUS, text) or 0)
    code = _first(_CODE, text)
    if isinstance(error, AlreadyExistsError) and status != 409:
        return ObjectExistsError(key)
    if isinstance(error, PreconditionError) or (verb == "put" and code == "NoSuchKey"):
        return ObjectChangedError(key)
    if status == 416:
        return RangeBeyondEndError(key)
    if status == 404 and verb in _READS and code in _MISSING_OBJECT:
        return ObjectNotFoundError(key)
    if status:
        return _error_type(status, code)(
            f"{verb} {key}: {_describe_response(verb, status, code, text)}"
        )
    return _no_response(f"{verb} {key}", text)


def _no_response(what: str, text: str) -> OperatingError:
    """The error for a request that was not sent or got no response."""
    if _BARE_REDIRECT in text:
        return OperatingError(f"{what}: redirected; {_OTHER_REGION}")
    if no_keys := _NO_KEYS.search(text):
        passing = no_keys[1] == StoreUnavailableError.__name__
        return (StoreUnavailableError if passing else OperatingError)(f"{what}: {no_keys[2]}")
    advice = next((words for part, words in _TRANSPORT_ADVICE.items() if part in text), "")
    kind = OperatingError if advice in _PERMANENT else StoreUnavailableError
    return kind("; ".join(filter(None, (f"{what}: {_transport(text)}", advice))))


def _error_type(status: int, code: str) -> type[OperatingError]:
    if code == "NoSuchBucket":
        return MissingBucketError
    # S3 returns 409 for a conditional PUT that raced another one and must be retried.
    passing = status in _PASSING_STATUSES or code in _PASSING_CODES
    return StoreUnavailableError if passing else OperatingError


def _describe_response(verb: str, status: int, code: str, text: str) -> str:
    message = html.unescape(_first(_MESSAGE, text)).rstrip(".")
    words = ", ".join(word for word in (f"status {status}", code, message) if word)
    advice = _ADVICE.get(code) or (_STATUS_ADVICE.get(status) if verb == "list" else None)
    return f"{words}; {advice}" if advice else words


def _transport(text: str) -> str:
    """Why there was no response; obstore's first line contains the address only if relevant."""
    kind = _first(_TRANSPORT, text)
    if not kind:
        return text.partition("\n")[0]
    return ", ".join(word for word in (f"{kind.lower()} failed", _first(_DETAIL, text)) if word)


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[match.lastindex or 0] if match else ""
