"""The answer to requests about delegation tokens (KIP-48), which do not exist here.

As in Kafka without a `delegation.token.secret.key`: a client that has not authenticated may not ask
for tokens, and any other learns that they are disabled.
"""

from typing import Final, NoReturn

from kafscale.broker.network.listener_config import SecurityProtocol
from kafscale.broker.requests.context import RequestContext
from kafscale.errors import DelegationTokensDisabledError, DelegationTokensNotAllowedError
from kafscale.security.principal import ANONYMOUS_NAME

NO_TIMESTAMP: Final = -1


def refuse(context: RequestContext) -> NoReturn:
    protocol = context.client.listener.protocol
    is_anonymous = context.client.principal.full_name == ANONYMOUS_NAME
    if protocol == SecurityProtocol.PLAINTEXT or (
        protocol == SecurityProtocol.SSL and is_anonymous
    ):
        raise DelegationTokensNotAllowedError(
            "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on"
            " delegation token authenticated channels."
        )
    raise DelegationTokensDisabledError("Delegation Token feature is not enabled.")
