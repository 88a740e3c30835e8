"""Security headers of all responses. Pure.

No foreign content is loaded or executed, the console cannot be framed, and API responses are not
cached. Inline styles are allowed, as charts and menus use them for positioning; inline scripts are
not.
"""

from collections.abc import Mapping
from typing import Final

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none';"
    " form-action 'self'; frame-ancestors 'none'"
)

COMMON_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
TLS_HEADERS: Final[Mapping[str, str]] = {"Strict-Transport-Security": "max-age=31536000"}

NO_STORE: Final = "no-store"
NO_CACHE: Final = "no-cache"
IMMUTABLE: Final = "public, max-age=31536000, immutable"
"""For files whose names contain a hash of their content."""


def security_headers(*, over_tls: bool) -> dict[str, str]:
    """The headers added to every response."""
    return {**COMMON_HEADERS, **(TLS_HEADERS if over_tls else {})}
