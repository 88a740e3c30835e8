"""AlterUserScramCredentials: v0.

Behaviour:
* Each user succeeds or fails on its own: a credential is set or deleted. The broker stores keys
  that are derived from the salted password, which are of no use for a login.
* As in Kafka, a user that is named twice is DUPLICATE_RESOURCE, whatever the mechanisms; so
  credentials for two mechanisms take two requests.
* Too few or too many iterations and empty names are UNACCEPTABLE_CREDENTIAL, unknown mechanisms
  UNSUPPORTED_SASL_MECHANISM, deleting a missing credential RESOURCE_NOT_FOUND.

Version notes: there is one version.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared import topic_admission
from kafscale.errors import (
    DuplicateResourceError,
    KafscaleError,
    ResourceNotFoundError,
    UnacceptableCredentialError,
    UnsupportedMechanismError,
)
from kafscale.metadata.access.model import Operation, ResourceType, ScramMechanism
from kafscale.protocol.messages.alter_user_scram_credentials import (
    AlteredUser,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    CredentialToDelete,
    CredentialToSet,
)
from kafscale.security.sasl import scram

USER_LENGTH_MAX: Final = 4_096
SALT_BYTES_MAX: Final = 1_024
"""Both limits make a credential fit into the metadata store."""


async def handle(
    context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    context.require(Operation.ALTER, ResourceType.CLUSTER)
    topic_admission.check_admin_allowed(context.broker)
    counts = Counter(change.user for change in _changes(request))
    errors: dict[str, KafscaleError | None] = {}
    for change in _changes(request):
        if counts[change.user] > 1:
            errors[change.user] = DuplicateResourceError(
                "A user credential cannot be altered twice in the same request"
            )
            continue
        try:
            await _apply(context, change)
            errors[change.user] = None
        except KafscaleError as error:
            errors[change.user] = error
    return AlterUserScramCredentialsResponse(
        users=[_result(user, error) for user, error in errors.items()]
    )


def error_response(
    _context: RequestContext, request: AlterUserScramCredentialsRequest, error: KafscaleError
) -> AlterUserScramCredentialsResponse:
    """The same error for every user."""
    users = dict.fromkeys(change.user for change in _changes(request))
    return AlterUserScramCredentialsResponse(users=[_result(user, error) for user in users])


def _changes(
    request: AlterUserScramCredentialsRequest,
) -> Iterator[CredentialToDelete | CredentialToSet]:
    yield from request.deletions
    yield from request.upsertions


async def _apply(context: RequestContext, change: CredentialToDelete | CredentialToSet) -> None:
    user, broker = change.user, context.broker
    if not user:
        raise UnacceptableCredentialError("Username must not be empty")
    if len(user) > USER_LENGTH_MAX:
        raise UnacceptableCredentialError(f"Username has more than {USER_LENGTH_MAX} characters")
    mechanism = _mechanism(change.mechanism)
    if isinstance(change, CredentialToSet):
        await _set(context, change, mechanism)
        event = "scram credential set"
    else:
        if not await broker.access_store.remove_credential(user, mechanism):
            raise ResourceNotFoundError("Attempt to delete a user credential that does not exist")
        event = "scram credential deleted"
    broker.audit.changed(context, event, user=user, mechanism=mechanism.label)


async def _set(context: RequestContext, change: CredentialToSet, mechanism: ScramMechanism) -> None:
    if not 0 < len(change.salt) <= SALT_BYTES_MAX:
        raise UnacceptableCredentialError(f"Salt must have 1 to {SALT_BYTES_MAX} bytes")
    if not change.salted_password:
        raise UnacceptableCredentialError("Salted password must not be empty")
    credential = scram.credential(
        change.user,
        mechanism,
        bytes(change.salt),
        change.iterations,
        salted_password=bytes(change.salted_password),
    )
    await context.broker.access_store.set_credential(credential)


def _mechanism(number: int) -> ScramMechanism:
    try:
        return ScramMechanism(number)
    except ValueError:
        raise UnsupportedMechanismError("Unknown SCRAM mechanism") from None


def _result(user: str, error: KafscaleError | None) -> AlteredUser:
    if error is None:
        return AlteredUser(name=user, error_message=None)
    return AlteredUser(name=user, error_code=error.code, error_message=str(error))
