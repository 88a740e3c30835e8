"""List, create and delete SCRAM users, and change their passwords.

Passwords do not leave this machine: only salted credentials are sent (KIP-554).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

import msgspec

from kafscale.admin.security.acls import check_access
from kafscale.client.client import Client
from kafscale.errors import KafscaleError
from kafscale.metadata.access.model import ScramMechanism
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.alter_user_scram_credentials import (
    ALTER_USER_SCRAM_CREDENTIALS,
    AlterUserScramCredentialsRequest,
    CredentialToDelete,
    CredentialToSet,
)
from kafscale.protocol.messages.describe_user_scram_credentials import (
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    DescribedUser,
    DescribeUserScramCredentialsRequest,
    UserToDescribe,
)
from kafscale.security.sasl import scram


class CredentialInfo(msgspec.Struct, frozen=True):
    mechanism: str
    iterations: int


class UserInfo(msgspec.Struct, frozen=True):
    user: str
    credentials: list[CredentialInfo]


@dataclass(frozen=True, kw_only=True)
class Password:
    """A new password and the parameters of its salted hash."""

    text: str = field(repr=False)
    iterations: int
    random: Random

    def salted_credential(self, user: str, mechanism: ScramMechanism) -> CredentialToSet:
        """The credential that is sent to brokers."""
        salt = scram.new_salt(self.random)
        salted = scram.salt_password(self.text, mechanism, salt, self.iterations)
        return CredentialToSet(user, mechanism, self.iterations, salt, salted)


async def list_all(client: Client) -> list[UserInfo]:
    """All users with SCRAM credentials, by name."""
    users = await _describe(client, None)
    for user in users:
        check_access(f"user {user.name}", user.error_code, user.error_message)
    return [_user_info(user) for user in sorted(users, key=lambda user: user.name)]


async def mechanisms_of(client: Client, name: str) -> list[ScramMechanism]:
    """The mechanisms of a user; empty if there is no such user."""
    (user,) = await _describe(client, [UserToDescribe(name)])
    if user.error_code == ErrorCode.RESOURCE_NOT_FOUND:
        return []
    check_access(f"user {name}", user.error_code, user.error_message)
    return sorted(ScramMechanism(each.mechanism) for each in user.credentials)


async def create(
    client: Client, name: str, password: Password, mechanisms: Sequence[ScramMechanism]
) -> None:
    """Create a user; raise an error if it exists."""
    if await mechanisms_of(client, name):
        raise KafscaleError(
            f"user {name} already exists; change the password with: kafscale user password {name}"
        )
    await _set(client, name, password, mechanisms)


async def change_password(
    client: Client, name: str, password: Password, mechanisms: Sequence[ScramMechanism]
) -> list[ScramMechanism]:
    """Change the password for these mechanisms, or for all that the user has; return them."""
    known = await mechanisms_of(client, name)
    if not known:
        raise KafscaleError(f"there is no user {name}; create one: kafscale user create {name}")
    chosen = list(mechanisms) or known
    await _set(client, name, password, chosen)
    return chosen


async def delete(
    client: Client, names: Iterable[str], mechanisms: Sequence[ScramMechanism], *, missing_ok: bool
) -> tuple[list[str], list[str]]:
    """Delete credentials of users; return the deleted names and the problems of the others."""
    deleted, problems = [], []
    for name in dict.fromkeys(names):
        known = await mechanisms_of(client, name)
        chosen = [each for each in known if each in mechanisms] if mechanisms else known
        if chosen:
            for mechanism in chosen:
                deletion = CredentialToDelete(name, mechanism)
                await _alter(client, AlterUserScramCredentialsRequest(deletions=[deletion]))
            deleted.append(name)
        elif not missing_ok:
            by = f" by {' or '.join(each.label for each in mechanisms)}" if mechanisms else ""
            problems.append(f"user {name} cannot log in{by}; see: kafscale user list")
    return deleted, problems


async def _set(
    client: Client, name: str, password: Password, mechanisms: Sequence[ScramMechanism]
) -> None:
    for mechanism in mechanisms:  # Kafka allows a user only once per request.
        change = password.salted_credential(name, mechanism)
        await _alter(client, AlterUserScramCredentialsRequest(upsertions=[change]))


async def _describe(client: Client, users: list[UserToDescribe] | None) -> list[DescribedUser]:
    request = DescribeUserScramCredentialsRequest(users=users)
    response = await client.ask_controller(DESCRIBE_USER_SCRAM_CREDENTIALS, request)
    check_access("users", response.error_code, response.error_message)
    return response.users


async def _alter(client: Client, request: AlterUserScramCredentialsRequest) -> None:
    response = await client.ask_controller(ALTER_USER_SCRAM_CREDENTIALS, request)
    for user in response.users:
        check_access(f"user {user.name}", user.error_code, user.error_message)


def _user_info(user: DescribedUser) -> UserInfo:
    return UserInfo(
        user=user.name,
        credentials=[
            CredentialInfo(ScramMechanism(each.mechanism).label, each.iterations)
            for each in sorted(user.credentials, key=lambda each: each.mechanism)
        ],
    )
