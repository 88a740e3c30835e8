"""A coordinator for tests: it answers what it was told to, and keeps what it was asked."""

from collections import deque

from kafscale.net.host_port import Address


class ScriptedCoordinator:
    """Answers in the order of the script; an exception in it is raised."""

    def __init__(self, *script):
        self.group_id = "billing"
        self.node_id = 1
        self.address = Address("broker", 9092)
        self.unknown_apis = set()
        self.asked = []
        self._script = deque(script)

    async def serves(self, api):
        return api.name not in self.unknown_apis

    async def ask(self, api, request, code_of, **_options):
        self.asked.append(request)
        answer = self._script.popleft()
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, api.response), f"{api.name} was not expected here"
        code_of(answer)
        return answer
