"""An endpoint answers what it was given answers for, and says so of all else."""

import pytest

from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.endpoint import ControlEndpoint
from kafscale.control_plane.errors import ControlError
from kafscale.control_plane.messages import BrokerStatusResponse
from kafscale.control_plane.methods import METHODS
from unit.broker.harness import run


def test_what_is_not_answered_is_refused_with_a_sentence():
    async def story():
        async def status(_request):
            return BrokerStatusResponse(broker_id="somebody")

        endpoint = ControlEndpoint("operator", {"GetStatus": status})
        await endpoint.start("127.0.0.1", 0)
        refused = {}
        async with ControlClient(f"127.0.0.1:{endpoint.port}") as client:
            assert (await client.status()).broker_id == "somebody"
            for ask in (client.drain, client.flush, client.rebalance):
                with pytest.raises(ControlError) as error:
                    await ask()
                refused[ask.__name__] = error.value.status, error.value.details
            with pytest.raises(ControlError) as error:
                await anext(client.watch_assignments())
            refused["watch"] = error.value.status, error.value.details
        await endpoint.close()
        return refused

    async def check():
        assert await story() == {
            name: ("UNIMPLEMENTED", f"{method} is not for the operator; ask a broker")
            for name, method in {
                "drain": "DrainPartitions",
                "flush": "TriggerFlush",
                "rebalance": "Rebalance",
                "watch": "WatchAssignments",
            }.items()
        }

    run(check)


def test_nobody_answers_what_is_not_declared():
    with pytest.raises(AssertionError, match="declared"):
        ControlEndpoint("operator", {"Dance": METHODS.get})
