"""What cannot be undone is done only if a person has typed the name of it once more."""

from kafscale.errors import InvalidRequestError


def confirm(subject: str, name: str, typed: str) -> None:
    if typed != name:
        raise InvalidRequestError(f"to delete {subject}, type its name exactly, to confirm it")
