"""AlterUserScramCredentials (51): set and delete the SCRAM credentials of users (KIP-554).

Passwords are not sent: the client salts and hashes them first.

Version notes:
* v0: flexible from the beginning.
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Bytes, Int8, Int16, Int32, Message, String


class CredentialToDelete(Message):
    user: String = ""
    mechanism: Int8 = 0
    """1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""


class CredentialToSet(Message):
    user: String = ""
    mechanism: Int8 = 0
    """1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""
    iterations: Int32 = 0
    salt: Bytes = b""
    salted_password: Bytes = b""


class AlterUserScramCredentialsRequest(Message):
    deletions: list[CredentialToDelete] = []
    upsertions: list[CredentialToSet] = []


class AlteredUser(Message):
    name: String = ""
    error_code: Int16 = 0
    error_message: String | None = ""


class AlterUserScramCredentialsResponse(Message):
    throttle_time_ms: Int32 = 0
    users: list[AlteredUser] = []


ALTER_USER_SCRAM_CREDENTIALS = Api(
    51,
    "AlterUserScramCredentials",
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    0,
    flexible_since=0,
)
