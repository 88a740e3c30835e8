"""DescribeUserScramCredentials (50): which SCRAM mechanisms users have credentials for (KIP-554).

Version notes:
* v0: flexible from the beginning.
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int8, Int16, Int32, Message, String


class UserToDescribe(Message):
    name: String = ""


class DescribeUserScramCredentialsRequest(Message):
    users: list[UserToDescribe] | None = []
    """None, like an empty list: every user."""


class DescribedCredential(Message):
    mechanism: Int8 = 0
    """0 unknown, 1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""
    iterations: Int32 = 0


class DescribedUser(Message):
    name: String = ""
    error_code: Int16 = 0
    error_message: String | None = ""
    credentials: list[DescribedCredential] = []


class DescribeUserScramCredentialsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    users: list[DescribedUser] = []


DESCRIBE_USER_SCRAM_CREDENTIALS = Api(
    50,
    "DescribeUserScramCredentials",
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    0,
    flexible_since=0,
)
