"""SaslHandshake (17): a client names the SASL mechanism it wants and learns which ones we offer.

Version notes:
* v0: the tokens that follow are bare, a length and the bytes, without any Kafka header.
* v1: the tokens that follow travel in SaslAuthenticate (KIP-152).
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int16, Message, String


class SaslHandshakeRequest(Message):
    mechanism: String = ""


class SaslHandshakeResponse(Message):
    error_code: Int16 = 0
    mechanisms: list[String] = []


SASL_HANDSHAKE = Api(17, "SaslHandshake", SaslHandshakeRequest, SaslHandshakeResponse, 1)
