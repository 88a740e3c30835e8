"""A client of a broker in memory: real handlers serve its requests, without sockets.

users = on_broker(lambda client: user_admin.list_all(client))
"""

from kafscale.config import Config
from kafscale.config.sections.s3 import S3
from kafscale.config.sections.security import Authorization
from unit.broker.in_memory_broker import run_with_broker

WITHOUT_AUTHORIZATION = Config(s3=S3(use_memory=True))
AS_SUPER_USER = Config(
    s3=S3(use_memory=True),
    authorization=Authorization(enabled=True, super_users=("User:ANONYMOUS",)),
)
AS_NORMAL_USER = Config(s3=S3(use_memory=True), authorization=Authorization(enabled=True))


class InMemoryClient:
    """Sends every request to the only broker."""

    def __init__(self, broker):
        self.broker = broker

    async def ask_controller(self, api, request, *, wait_seconds=0.0):
        assert wait_seconds == 0.0
        return await self.broker.ask(api, request)


def on_broker(scenario, config=AS_SUPER_USER):
    """Run a scenario with the client of a new broker."""

    async def body(broker):
        await scenario(InMemoryClient(broker))

    run_with_broker(body, config=config)
