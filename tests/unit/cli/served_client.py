"""A client of a broker without sockets: what commands ask is answered by the real handlers.

users = on_broker(lambda client: user_admin.list_all(client))
"""

from kafscale.config import Config
from kafscale.config.sections.s3 import S3
from kafscale.config.sections.security import Authorization
from unit.broker.in_memory_broker import run_with_broker

OPEN = Config(s3=S3(use_memory=True))
RULED = Config(
    s3=S3(use_memory=True),
    authorization=Authorization(enabled=True, super_users=("User:ANONYMOUS",)),
)
GUARDED = Config(s3=S3(use_memory=True), authorization=Authorization(enabled=True))


class ServedClient:
    """Asks the one broker that there is."""

    def __init__(self, broker):
        self.broker = broker

    async def ask_controller(self, api, request, *, wait_seconds=0.0):
        assert wait_seconds == 0.0
        return await self.broker.ask(api, request)


def on_broker(story, config=RULED):
    """Let a story happen with a new broker."""

    async def body(broker):
        await story(ServedClient(broker))

    run_with_broker(body, config=config)
