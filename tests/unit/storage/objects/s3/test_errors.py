"""Translation of the S3 client's errors."""

import pytest
from obstore.exceptions import (
    AlreadyExistsError,
    GenericError,
    PermissionDeniedError,
    UnauthenticatedError,
)

from kafscale.errors import (
    ObjectExistsError,
    ObjectNotFoundError,
    OperatingError,
    StoreUnavailableError,
)
from kafscale.storage.objects.s3.errors import MissingBucketError, RangeBeyondEndError, translate


def answer(status: int, code: str = "", message: str = "because") -> str:
    body = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>" if code else ""
    return (
        "Generic S3 error: Error performing PUT http://127.0.0.1:9000/bucket/ns/a in 1.6ms - "
        f"Server returned non-2xx status code: {status} Words: {body}\n\nDebug source:\n..."
    )


NO_BUCKET = (
    "status 404, NoSuchBucket, because; create the bucket or set s3.createBucket to true, or "
    "correct s3.bucket"
)
OTHER_REGION = "the bucket is in another region: set s3.region to the bucket's"
RUN_OUT = "the credentials have expired: provide new ones"
OTHER_KEY = "check s3.kmsKeyArn, and that the credentials may use that key"
NOT_RUNNING = "check s3.endpoint, and that the server runs"
OTHER_SERVER = "check s3.endpoint: it must be that of an S3 server, without the bucket's name"

REFUSED = """Generic S3 error: Error performing PUT http://127.0.0.1:1/b/ns/a in 337µs - HTTP error

Debug source:
Generic { store: "S3", source: RetryError( RetryErrorImpl { method: PUT, inner: Http( HttpError {
    kind: Connect, source: reqwest::Error { kind: Request, source: Os { code: 111,
    kind: ConnectionRefused, message: "Connection refused", } } } ) } ) }"""


REDIRECTED = (
    "Generic S3 error: Error performing list request: Error performing GET http://host/b in 1ms - "
    "Received redirect without LOCATION, this normally indicates an incorrectly configured region"
)
NO_KEYS = (
    "The operation lacked valid authentication credentials for path External AWS credential "
    "provider: {}: credentials: AssumeRole: no response\n\nDebug source:\n..."
)


@pytest.mark.parametrize(
    ("verb", "error", "expected", "words"),
    [
        (
            "put",
            GenericError(answer(503, "SlowDown")),
            StoreUnavailableError,
            "put ns/a: status 503, SlowDown, because",
        ),
        ("put", GenericError(answer(500)), StoreUnavailableError, "put ns/a: status 500"),
        (
            "put",
            GenericError(answer(400, "RequestTimeout")),
            StoreUnavailableError,
            "put ns/a: status 400, RequestTimeout, because",
        ),
        (
            "put",
            GenericError(answer(400, "InvalidRequest")),
            OperatingError,
            "put ns/a: status 400, InvalidRequest, because",
        ),
        ("put", AlreadyExistsError(answer(412, "PreconditionFailed")), ObjectExistsError, "ns/a"),
        (
            "put",
            AlreadyExistsError(answer(409, "ConditionalRequestConflict")),
            StoreUnavailableError,
            "put ns/a: status 409, ConditionalRequestConflict, because",
        ),
        (
            "put",
            FileNotFoundError(answer(404, "NoSuchBucket")),
            MissingBucketError,
            f"put ns/a: {NO_BUCKET}",
        ),
        (
            "get",
            FileNotFoundError(answer(404, "NoSuchBucket")),
            MissingBucketError,
            f"get ns/a: {NO_BUCKET}",
        ),
        (
            "put",
            GenericError(answer(400, "ExpiredToken")),
            StoreUnavailableError,
            f"put ns/a: status 400, ExpiredToken, because; {RUN_OUT}",
        ),
        (
            "put",
            GenericError(answer(400, "KMS.NotFoundException")),
            OperatingError,
            f"put ns/a: status 400, KMS.NotFoundException, because; {OTHER_KEY}",
        ),
        (
            "list",
            GenericError(answer(400, "AuthorizationHeaderMalformed", "expecting 'eu'")),
            OperatingError,
            f"list ns/a: status 400, AuthorizationHeaderMalformed, expecting 'eu'; {OTHER_REGION}",
        ),
        (
            "list",
            GenericError(REDIRECTED),
            OperatingError,
            f"list ns/a: redirected; {OTHER_REGION}",
        ),
        (
            "put",
            UnauthenticatedError(NO_KEYS.format("StoreUnavailableError")),
            StoreUnavailableError,
            "put ns/a: credentials: AssumeRole: no response",
        ),
        (
            "put",
            UnauthenticatedError(NO_KEYS.format("OperatingError")),
            OperatingError,
            "put ns/a: credentials: AssumeRole: no response",
        ),
        ("get", FileNotFoundError(answer(404, "NoSuchKey")), ObjectNotFoundError, "ns/a"),
        ("head", FileNotFoundError(answer(404)), ObjectNotFoundError, "ns/a"),
        ("get", GenericError(answer(416, "InvalidRange")), RangeBeyondEndError, "ns/a"),
        (
            "put",
            GenericError(REFUSED),
            StoreUnavailableError,
            f"put ns/a: connect failed, Connection refused; {NOT_RUNNING}",
        ),
        (
            "list",
            GenericError(answer(404, "NoSuchKey", "&quot;a&quot; is missing.")),
            OperatingError,
            f'list ns/a: status 404, NoSuchKey, "a" is missing; {OTHER_SERVER}',
        ),
        (
            "get",
            GenericError("Generic S3 error: what is this?\n\nDebug"),
            StoreUnavailableError,
            "get ns/a: Generic S3 error: what is this?",
        ),
    ],
)
def test_error_text_is_parsed(verb, error, expected, words):
    failure = translate(verb, "ns/a", error)
    assert type(failure) is expected
    assert str(failure) == words


def test_request_data_in_a_response_is_not_passed_on():
    text = answer(403, "SignatureDoesNotMatch") + "<AWSAccessKeyId>AKIA1</AWSAccessKeyId>"
    failure = translate("put", "ns/a", PermissionDeniedError(text))
    assert type(failure) is OperatingError
    assert str(failure) == (
        "put ns/a: status 403, SignatureDoesNotMatch, because; check the credentials "
        "(s3.credentialSource, s3.accessKey, s3.secretKey)"
    )
