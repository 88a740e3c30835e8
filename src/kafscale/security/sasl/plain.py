"""The server side of SASL/PLAIN (RFC 4616), and its users from a setting and a file.

    [authorization id] NUL user NUL password

An unknown user and a wrong password give the same error, in the same time. The authorization id
must be empty or the user's own name. Listeners decide about encryption. The file of users:

    alice:secret        One user per line; the password may contain any character but a newline.
    # A comment.

It may also be a directory with one file per user, which contains the password, as in a mounted
Kubernetes Secret.

Invariants: no password is kept in memory, only its HMAC under a random key of this process. Users
of the setting and of the file are both valid; for a user in both, the file is used, because it can
change while the broker runs. Error messages about malformed content contain none of it.
"""

import hmac
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from kafscale.errors import AuthenticationError, ConfigError
from kafscale.security.principal import USER_PREFIX, Principal
from kafscale.security.reloading_file import ReloadingFile
from kafscale.security.sasl.authenticator import SaslStep

TOKEN_BYTES_MAX: Final = 4 * 1024
"""Far more than the 255 bytes per field that RFC 4616 requires."""

FILE_BYTES_MAX: Final = 4 * 1024 * 1024
USER_COUNT_MAX: Final = 100_000

Passwords = dict[str, bytes]
"""The HMAC of each user's password."""


class PlainSaslServer:
    """One authentication attempt, with one token."""

    def __init__(self, verify_password: Callable[[str, str], bool]) -> None:
        """`verify_password` returns whether a user has a password."""
        self._verify_password = verify_password
        self.claimed_user = ""

    def evaluate_response(self, token: bytes) -> SaslStep:
        authorization_id, user, password = _parts(token)
        self.claimed_user = user
        if not user:
            raise AuthenticationError("Authentication failed: username not specified")
        if not password:
            raise AuthenticationError("Authentication failed: password not specified")
        if not self._verify_password(user, password):
            raise AuthenticationError("Authentication failed: Invalid username or password")
        if authorization_id not in {"", user}:
            raise AuthenticationError(
                "Authentication failed: Client requested an authorization id that is different"
                " from username"
            )
        return SaslStep(b"", Principal(USER_PREFIX + user))


def _parts(token: bytes) -> tuple[str, str, str]:
    with suppress(ValueError):  # Wrong number of fields, or not UTF-8.
        if len(token) <= TOKEN_BYTES_MAX:
            authorization_id, user, password = token.decode().split("\0")
            return authorization_id, user, password
    raise AuthenticationError(
        "Invalid SASL/PLAIN response: expected an authorization id, a user and a password"
    )


class PlainUsers:
    """The users of SASL/PLAIN."""

    def __init__(self, setting: str, file: str, *, secret: bytes, clock: Callable[[], int]) -> None:
        """Raises `ConfigError` if there are no users."""
        self._secret = secret
        entries = enumerate(setting.split(","), 1) if setting else ()
        self._from_setting = self._digest_all(_pairs(entries, "sasl.plainUsers: entry"))
        self._file = ReloadingFile(Path(file), self._read, clock) if file else None
        if not self._from_setting and not (self._file and self._file.value()):
            raise ConfigError(
                "sasl.enabledMechanisms offers PLAIN, but there are no users; set"
                " sasl.plainUsersFile or sasl.plainUsers"
            )

    def verify_password(self, user: str, password: str) -> bool:
        """Verify a password; unknown users take the same time."""
        digest = self._digest(password)
        from_file = self._file.value().get(user) if self._file is not None else None
        expected = from_file or self._from_setting.get(user)
        return hmac.compare_digest(digest, expected or bytes(len(digest))) and expected is not None

    def _read(self, path: Path) -> Passwords:
        try:
            users = _directory(path) if path.is_dir() else _lines(path)
        except OSError as error:
            raise ConfigError(
                f"sasl.plainUsersFile: {path} cannot be read: {error.strerror}; name a file or a"
                " directory that this process may read"
            ) from None
        if len(users) > USER_COUNT_MAX:
            raise ConfigError(f"{path} has more than {USER_COUNT_MAX} users")
        return self._digest_all(users)

    def _digest_all(self, users: dict[str, str]) -> Passwords:
        return {user: self._digest(password) for user, password in users.items()}

    def _digest(self, password: str) -> bytes:
        return hmac.digest(self._secret, password.encode(), "sha256")


def _lines(path: Path) -> dict[str, str]:
    lines = enumerate(_content(path).split("\n"), 1)
    entries = [
        (count, line.removesuffix("\r"))
        for count, line in lines
        if line.strip() and not line.startswith("#")
    ]
    return _pairs(entries, f"{path}: line")


def _directory(path: Path) -> dict[str, str]:
    """One user per file; hidden files belong to Kubernetes."""
    files = [entry for entry in sorted(path.iterdir()) if not entry.name.startswith(".")]
    users = {entry.name: _strip_newline(_content(entry)) for entry in files if entry.is_file()}
    for user, password in users.items():
        if not password:
            raise ConfigError(f"{path}: the file of user {user!r} is empty")
    return users


def _pairs(entries: Iterable[tuple[int, str]], source: str) -> dict[str, str]:
    users: dict[str, str] = {}
    for count, entry in entries:
        user, _, password = entry.partition(":")
        user = user.strip()
        if not user or not password:
            raise ConfigError(f"{source} {count} does not have the form user:password")
        if user in users:
            raise ConfigError(f"{source} {count} repeats a user")
        users[user] = password
    return users


def _content(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        raise ConfigError(f"{path} is larger than {FILE_BYTES_MAX} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text") from None


def _strip_newline(text: str) -> str:
    """Remove one trailing newline, as editors add."""
    return text.removesuffix("\n").removesuffix("\r")
