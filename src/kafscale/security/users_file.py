"""`PlainUsers`: the users of PLAIN and their passwords, from a setting and from a file.

    alice:secret        A line for each user; a password may hold anything but the end of a line.
    # A comment.

or a directory with a file for each user, named after the user, that holds the password: which is
how Kubernetes mounts a secret.

The laws: no password is kept, only what it comes to under a key that this process alone knows. Both
sources hold at once; where they name the same user, the file counts, because it can be changed
while the broker runs. Nothing that is said about a malformed source repeats any of it.
"""

import hmac
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from kafscale.errors import ConfigError
from kafscale.security.reloading_file import ReloadingFile

FILE_BYTES_MAX: Final = 4 * 1024 * 1024
USER_COUNT_MAX: Final = 100_000

Passwords = dict[str, bytes]
"""What the password of each user comes to."""


class PlainUsers:
    """Who is who by a password."""

    def __init__(self, setting: str, file: str, *, secret: bytes, clock: Callable[[], int]) -> None:
        """Raises `ConfigError` where there are no users."""
        self._secret = secret
        entries = enumerate(setting.split(","), 1) if setting else ()
        self._fixed = self._digested(_pairs(entries, "sasl.plainUsers: entry"))
        self._file = ReloadingFile(Path(file), self._read, clock) if file else None
        if not self._fixed and not (self._file and self._file.value()):
            raise ConfigError(
                "sasl.enabledMechanisms offers PLAIN, but there are no users; name some in"
                " sasl.plainUsersFile, or in sasl.plainUsers"
            )

    def verify_password(self, user: str, password: str) -> bool:
        """Whether that is the user's password; it takes as long for a user that does not exist."""
        shown = self._digest(password)
        from_file = self._file.value().get(user) if self._file is not None else None
        kept = from_file or self._fixed.get(user)
        return hmac.compare_digest(shown, kept or bytes(len(shown))) and kept is not None

    def _read(self, path: Path) -> Passwords:
        try:
            users = _directory(path) if path.is_dir() else _lines(path)
        except OSError as error:
            raise ConfigError(
                f"sasl.plainUsersFile names {path}, which cannot be read: {error.strerror}; name a"
                " file or a directory that this process may read"
            ) from None
        if len(users) > USER_COUNT_MAX:
            raise ConfigError(f"{path} names more than {USER_COUNT_MAX} users")
        return self._digested(users)

    def _digested(self, users: dict[str, str]) -> Passwords:
        return {user: self._digest(password) for user, password in users.items()}

    def _digest(self, password: str) -> bytes:
        return hmac.digest(self._secret, password.encode(), "sha256")


def _lines(path: Path) -> dict[str, str]:
    lines = enumerate(_content(path).split("\n"), 1)
    written = [
        (count, line.removesuffix("\r"))
        for count, line in lines
        if line.strip() and not line.startswith("#")
    ]
    return _pairs(written, f"{path}: line")


def _directory(path: Path) -> dict[str, str]:
    """One user for each file; what begins with a dot is Kubernetes' own."""
    files = [entry for entry in sorted(path.iterdir()) if not entry.name.startswith(".")]
    users = {entry.name: _without_end(_content(entry)) for entry in files if entry.is_file()}
    for user, password in users.items():
        if not password:
            raise ConfigError(f"{path}: the file for {user!r} holds no password")
    return users


def _pairs(entries: Iterable[tuple[int, str]], place: str) -> dict[str, str]:
    users: dict[str, str] = {}
    for count, entry in entries:
        user, _, password = entry.partition(":")
        user = user.strip()
        if not user or not password:
            raise ConfigError(f"{place} {count} is not of the form user:password")
        if user in users:
            raise ConfigError(f"{place} {count} names a user for the second time")
        users[user] = password
    return users


def _content(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        raise ConfigError(f"{path} holds more than {FILE_BYTES_MAX} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not text in UTF-8") from None


def _without_end(text: str) -> str:
    """Without the one end of a line that editors put there."""
    return text.removesuffix("\n").removesuffix("\r")
