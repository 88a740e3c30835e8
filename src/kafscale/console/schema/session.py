"""The login session."""

from kafscale.console.schema.base import RequestModel, ResponseModel


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
