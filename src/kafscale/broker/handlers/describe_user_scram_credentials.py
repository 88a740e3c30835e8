"""DescribeUserScramCredentials: v0.

Behaviour:
* The mechanisms that users have credentials for, and the iterations; nothing that helps to guess a
  password. A request without users returns all users with credentials.
* A user without credentials is RESOURCE_NOT_FOUND, a user that is named twice DUPLICATE_RESOURCE.

Version notes: there is one version.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from kafscale.broker.requests.context import RequestContext
from kafscale.errors import DuplicateResourceError, KafscaleError, ResourceNotFoundError
from kafscale.metadata.access.model import Operation, ResourceType, ScramCredential, ScramMechanism
from kafscale.protocol.messages.describe_user_scram_credentials import (
    DescribedCredential,
    DescribedUser,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)


def handle(
    context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    context.require(Operation.DESCRIBE, ResourceType.CLUSTER)
    requested = Counter(user.name for user in request.users or ())
    credentials = _credentials(context, requested)
    return DescribeUserScramCredentialsResponse(
        error_message=None,
        users=[
            _describe(name, requested[name], credentials)
            for name in requested or sorted(credentials)
        ],
    )


def _credentials(
    context: RequestContext, requested: Counter[str]
) -> Mapping[str, Sequence[ScramCredential]]:
    store = context.broker.access_store
    if requested:
        possible = {
            name: [store.credential(name, mechanism) for mechanism in ScramMechanism]
            for name in requested
        }
        return {
            name: [credential for credential in credentials if credential is not None]
            for name, credentials in possible.items()
        }
    by_user: defaultdict[str, list[ScramCredential]] = defaultdict(list)
    for credential in sorted(store.credentials, key=lambda credential: credential.mechanism):
        by_user[credential.user].append(credential)
    return by_user


def _describe(
    name: str, count: int, credentials: Mapping[str, Sequence[ScramCredential]]
) -> DescribedUser:
    if count > 1:
        return _failed(
            name,
            DuplicateResourceError(
                "Cannot describe SCRAM credentials for the same user twice in a single request:"
                f" {name}"
            ),
        )
    if not credentials[name]:
        return _failed(
            name,
            ResourceNotFoundError(
                f"Attempt to describe a user credential that does not exist: {name}"
            ),
        )
    return DescribedUser(
        name=name,
        error_message=None,
        credentials=[
            DescribedCredential(mechanism=each.mechanism, iterations=each.iterations)
            for each in credentials[name]
        ],
    )


def _failed(name: str, error: KafscaleError) -> DescribedUser:
    return DescribedUser(name=name, error_code=error.code, error_message=str(error))
