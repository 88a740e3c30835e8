"""SaslHandshake (17): a client names the SASL mechanism to use and learns which ones are enabled.

Version notes:
* v0: the following tokens are raw: a length and the bytes, without Kafka headers.
* v1: the following tokens are in SaslAuthenticate requests (KIP-152).
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int16, Message, String


class SaslHandshakeRequest(Message):
    mechanism: String = ""


class SaslHandshakeResponse(Message):
    error_code: Int16 = 0
    mechanisms: list[String] = []


SASL_HANDSHAKE = Api(17, "SaslHandshake", SaslHandshakeRequest, SaslHandshakeResponse, 1)
