"""Who is logged in."""

from kafscale.console.schema.base import Asked, View


class Session(View):
    """What a page has to know before anything else."""

    is_configured: bool
    """Whether a user name and a password are set: without both, nobody gets in."""
    username: str | None
    csrf_token: str | None
    """Goes along, as the header `X-CSRF-Token`, with every request that changes something."""
    expires_at_ms: int | None
    version: str


class Login(Asked):
    username: str
    password: str
