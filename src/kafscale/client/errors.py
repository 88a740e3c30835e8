"""What may go wrong between a client and the brokers, in words that say what to do next.

KafscaleError
├── UnreachableError    no broker answers, or one went away before it did: it may come back
└── AnsweredError       a broker answered, and the answer is an error; `answer` is its code
"""

from kafscale.errors import KafscaleError
from kafscale.protocol.error_codes import ErrorCode


class UnreachableError(KafscaleError):
    """A broker that cannot be reached, or went away before it answered."""


class AnsweredError(KafscaleError):
    """An error that a broker answered with."""

    def __init__(
        self, subject: str, code: int, message: str | None = None, *, hint: str = ""
    ) -> None:
        self.answer = ErrorCode.of(code)
        self.sentence = f"{subject}: {message or self.answer.message} ({self.answer.name})"
        """Without the hint, which names commands: for those who are not at a command line."""
        super().__init__(f"{self.sentence}; {hint}" if hint else self.sentence)

    def hinted(self, hint: str) -> "AnsweredError":
        """The same error, with what it means where it was met."""
        again = AnsweredError("", self.answer)
        again.sentence = self.sentence
        again.args = (f"{self.sentence}; {hint}",)
        return again


def check(subject: str, code: int, message: str | None = None, *, hint: str = "") -> None:
    """Raise unless an answer about `subject` is a success."""
    if code != ErrorCode.NONE:
        raise AnsweredError(subject, code, message, hint=hint)


def may_pass(error: KafscaleError) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(error, AnsweredError):
        return error.answer.retriable
    return isinstance(error, UnreachableError)
