"""The headers that every answer carries, so that browsers guard the console with us. Pure.

The law: nothing that comes from elsewhere runs or is shown here, nobody may frame the console, and
what the API tells is kept by no cache. Styles may stand in elements, because charts and menus place
themselves by them; scripts may not.
"""

from collections.abc import Mapping
from typing import Final

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none';"
    " form-action 'self'; frame-ancestors 'none'"
)

ALWAYS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
OVER_TLS: Final[Mapping[str, str]] = {"Strict-Transport-Security": "max-age=31536000"}

NEVER_KEPT: Final = "no-store"
ASKED_AGAIN: Final = "no-cache"
KEPT_FOR_A_YEAR: Final = "public, max-age=31536000, immutable"
"""For files whose names change with what is in them."""


def guarding(*, over_tls: bool) -> dict[str, str]:
    """What is added to every answer."""
    return {**ALWAYS, **(OVER_TLS if over_tls else {})}
