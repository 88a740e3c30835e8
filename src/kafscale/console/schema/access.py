"""The login session, ACLs, users and quotas."""

from kafscale.admin.security.acls import AclInfo
from kafscale.console.schema.base import RequestModel, ResponseModel

Acl = AclInfo


class Acls(ResponseModel):
    is_enabled: bool
    """True if brokers enforce ACLs."""
    items: list[Acl]
    problem: str | None


class NewAcl(RequestModel):
    principal: str
    operation: str
    resource_type: str
    resource_name: str
    host: str = "*"
    permission: str = "ALLOW"
    pattern_type: str = "LITERAL"


class User(ResponseModel):
    name: str
    mechanisms: list[str]


class Users(ResponseModel):
    items: list[User]
    problem: str | None


class NewUser(RequestModel):
    name: str
    password: str
    mechanisms: list[str] = []
    """Empty: all that brokers support."""


class NewPassword(RequestModel):
    password: str


class Quota(ResponseModel):
    entity: dict[str, str | None]
    """Types such as `user` or `client-id`, each with a name; null is the default entity."""
    values: dict[str, float]


class Quotas(ResponseModel):
    items: list[Quota]
    problem: str | None


class SetQuota(RequestModel):
    entity: dict[str, str | None]
    values: dict[str, float | None]
    """Null removes a limit."""


class AccessOptions(ResponseModel):
    """The options of forms."""

    operations: dict[str, list[str]]
    """By resource type."""
    pattern_types: list[str]
    mechanisms: list[str]
    quota_keys: list[str]


class Session(ResponseModel):
    """What a page needs to know first."""

    is_configured: bool
    """True if a user name and a password are set; without them, no login is possible."""
    username: str | None
    csrf_token: str | None
    """Sent as the header `X-CSRF-Token` with every request that changes something."""
    expires_at_ms: int | None
    version: str


class Login(RequestModel):
    username: str
    password: str
