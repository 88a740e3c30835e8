"""A group coordinator with scripted responses, which records requests."""

from collections import deque

from kafscale.net.address import Address


class ScriptedCoordinator:
    """Returns the responses of the script in order; raises exceptions in it."""

    def __init__(self, *script):
        self.group_id = "billing"
        self.node_id = 1
        self.address = Address("broker", 9092)
        self.unknown_apis = set()
        self.requests = []
        self._script = deque(script)

    async def serves(self, api):
        return api.name not in self.unknown_apis

    async def ask(self, api, request, code_of, **_options):
        self.requests.append(request)
        response = self._script.popleft()
        if isinstance(response, Exception):
            raise response
        assert isinstance(response, api.response), f"{api.name} was not expected here"
        code_of(response)
        return response
