"""Who may do what, who may log in, and how much each may use."""

from kafscale.console.schema.base import Asked, View


class Acl(View):
    principal: str
    host: str
    operation: str
    permission: str
    resource_type: str
    resource_name: str
    pattern_type: str


class Acls(View):
    is_enabled: bool
    """Whether the brokers ask for permission at all."""
    items: list[Acl]
    problem: str | None


class NewAcl(Asked):
    principal: str
    operation: str
    resource_type: str
    resource_name: str
    host: str = "*"
    permission: str = "ALLOW"
    pattern_type: str = "LITERAL"


class User(View):
    name: str
    mechanisms: list[str]


class Users(View):
    items: list[User]
    problem: str | None


class NewUser(Asked):
    name: str
    password: str
    mechanisms: list[str] = []
    """None named: all that brokers know."""


class NewPassword(Asked):
    password: str


class Quota(View):
    entity: dict[str, str | None]
    """Such as `user` or `client-id` to a name; null stands for the default of all others."""
    values: dict[str, float]


class Quotas(View):
    items: list[Quota]
    problem: str | None


class SetQuota(Asked):
    entity: dict[str, str | None]
    values: dict[str, float | None]
    """Null takes one back."""


class AccessWords(View):
    """What forms offer."""

    operations: dict[str, list[str]]
    """By type of resource."""
    pattern_types: list[str]
    mechanisms: list[str]
    quota_keys: list[str]
