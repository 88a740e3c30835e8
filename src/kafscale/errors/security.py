"""Errors of those who are not let in, or not let do something."""

from kafscale.errors.base import RefusedError


class AuthenticationError(RefusedError):
    """Somebody who could not show who they are; the message is for them to read."""

    code = 58


class UnsupportedMechanismError(RefusedError):
    """A SASL mechanism that is not offered here."""

    code = 33


class IllegalSaslStateError(RefusedError):
    """A step of an authentication that is not due."""

    code = 34


class AuthorizationError(RefusedError):
    """Something that no rule allows, or that a rule denies."""

    code = 31


class TopicAuthorizationError(AuthorizationError):
    code = 29


class GroupAuthorizationError(AuthorizationError):
    code = 30


class ClusterAuthorizationError(AuthorizationError):
    code = 31


class TransactionalIdAuthorizationError(AuthorizationError):
    code = 53


class SecurityDisabledError(RefusedError):
    """A question about rules, where there are none."""

    code = 54


class ThrottledError(RefusedError):
    """More than a quota allows at the moment."""

    code = 89


class ResourceNotFoundError(RefusedError):
    """Something that is not there."""

    code = 91


class DuplicateResourceError(RefusedError):
    """Something that is named twice in one request."""

    code = 92


class UnacceptableCredentialError(RefusedError):
    """A credential that is too weak, or incomplete."""

    code = 93
