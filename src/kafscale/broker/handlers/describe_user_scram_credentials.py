"""DescribeUserScramCredentials: v0.

Behaviour:
* Which mechanisms users have credentials for, and with how many iterations; nothing that helps to
  guess a password. No users at all stand for everybody who has one.
* A user without any is RESOURCE_NOT_FOUND, one who is named twice DUPLICATE_RESOURCE.

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
    asked = Counter(user.name for user in request.users or ())
    found = _found(context, asked)
    return DescribeUserScramCredentialsResponse(
        error_message=None,
        users=[_describe(name, asked[name], found) for name in asked or sorted(found)],
    )


def _found(context: RequestContext, asked: Counter[str]) -> Mapping[str, Sequence[ScramCredential]]:
    rules = context.broker.access_store
    if asked:
        possible = {
            name: [rules.credential(name, mechanism) for mechanism in ScramMechanism]
            for name in asked
        }
        return {
            name: [credential for credential in credentials if credential is not None]
            for name, credentials in possible.items()
        }
    found: defaultdict[str, list[ScramCredential]] = defaultdict(list)
    for credential in sorted(rules.credentials, key=lambda credential: credential.mechanism):
        found[credential.user].append(credential)
    return found


def _describe(
    name: str, count: int, found: Mapping[str, Sequence[ScramCredential]]
) -> DescribedUser:
    if count > 1:
        return _failed(
            name,
            DuplicateResourceError(
                "Cannot describe SCRAM credentials for the same user twice in a single request:"
                f" {name}"
            ),
        )
    if not found[name]:
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
            for each in found[name]
        ],
    )


def _failed(name: str, error: KafscaleError) -> DescribedUser:
    return DescribedUser(name=name, error_code=error.code, error_message=str(error))
