"""What `kafscale user` asks of a cluster, as plain data: the form in which programs get it.

The law: passwords do not leave this machine; what is sent is made of them, salted (KIP-554).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kafscale.admin.security.errors import check_access
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

Data = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Password:
    """A new password, and how it is made hard to find out."""

    text: str = field(repr=False)
    iterations: int
    random: Random

    def salted(self, user: str, mechanism: ScramMechanism) -> CredentialToSet:
        """What brokers are sent."""
        salt = scram.new_salt(self.random)
        salted = scram.salt_password(self.text, mechanism, salt, self.iterations)
        return CredentialToSet(user, mechanism, self.iterations, salt, salted)


async def list_all(client: Client) -> list[Data]:
    """Every user who can log in by SCRAM, and how."""
    users = await _describe(client, None)
    for user in users:
        check_access(f"user {user.name}", user.error_code, user.error_message)
    return [_data(user) for user in sorted(users, key=lambda user: user.name)]


async def mechanisms_of(client: Client, name: str) -> list[ScramMechanism]:
    """How a user can log in; by no mechanism, if there is no such user."""
    (user,) = await _describe(client, [UserToDescribe(name)])
    if user.error_code == ErrorCode.RESOURCE_NOT_FOUND:
        return []
    check_access(f"user {name}", user.error_code, user.error_message)
    return sorted(ScramMechanism(each.mechanism) for each in user.credentials)


async def create(
    client: Client, name: str, password: Password, mechanisms: Sequence[ScramMechanism]
) -> None:
    """Let somebody log in who could not."""
    if await mechanisms_of(client, name):
        raise KafscaleError(
            f"user {name} exists; to give them another password: kafscale user password {name}"
        )
    await _set(client, name, password, mechanisms)


async def change_password(
    client: Client, name: str, password: Password, mechanisms: Sequence[ScramMechanism]
) -> list[ScramMechanism]:
    """Give somebody another password, for all mechanisms they have if none is named: for which."""
    known = await mechanisms_of(client, name)
    if not known:
        raise KafscaleError(f"there is no user {name}; create one: kafscale user create {name}")
    chosen = list(mechanisms) or known
    await _set(client, name, password, chosen)
    return chosen


async def delete(
    client: Client, names: Iterable[str], mechanisms: Sequence[ScramMechanism], *, missing_ok: bool
) -> tuple[list[str], list[str]]:
    """Let users not log in any more: who could, and what is wrong with the others."""
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
    for mechanism in mechanisms:  # In one request, Kafka takes a user once only.
        change = password.salted(name, mechanism)
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


def _data(user: DescribedUser) -> Data:
    return {
        "user": user.name,
        "credentials": [
            {"mechanism": ScramMechanism(each.mechanism).label, "iterations": each.iterations}
            for each in sorted(user.credentials, key=lambda each: each.mechanism)
        ],
    }
