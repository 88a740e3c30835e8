"""Errors of authentication, authorization and quotas."""

from kafscale.errors.base import RefusedError


class AuthenticationError(RefusedError):
    """A failed authentication; the message is sent to the client."""

    code = 58


class UnsupportedMechanismError(RefusedError):
    """A SASL mechanism that is not enabled."""

    code = 33


class IllegalSaslStateError(RefusedError):
    """A request that is not valid at this stage of the authentication."""

    code = 34


class AuthorizationError(RefusedError):
    """An operation that no ACL allows, or that one denies."""

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
    """A request about ACLs while authorization is disabled."""

    code = 54


class DelegationTokensDisabledError(RefusedError):
    """A request about delegation tokens, which are not supported."""

    code = 61


class DelegationTokensNotAllowedError(RefusedError):
    """A request about delegation tokens by a client that has not authenticated."""

    code = 64


class ThrottledError(RefusedError):
    """A quota is exceeded."""

    code = 89


class ResourceNotFoundError(RefusedError):
    """A resource that does not exist."""

    code = 91


class DuplicateResourceError(RefusedError):
    """A resource that occurs twice in one request."""

    code = 92


class UnacceptableCredentialError(RefusedError):
    """A credential that is too weak or incomplete."""

    code = 93
