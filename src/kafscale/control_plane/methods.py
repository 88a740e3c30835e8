"""The methods of the control plane, as proto/control/broker.proto declares them.

Servers and clients are made from the declaration itself, so that no second list of methods can
disagree with it.
"""

from typing import Any, Final, NamedTuple

from google.protobuf.message_factory import GetMessageClass

from kafscale.control_plane.messages import DESCRIPTOR


class Method(NamedTuple):
    """One method, with what it takes and answers."""

    service: str
    name: str
    request: Any
    response: Any
    takes_stream: bool
    answers_stream: bool

    @property
    def path(self) -> str:
        return f"/{self.service}/{self.name}"


METHODS: Final = {
    method.name: Method(
        service=service.full_name,
        name=method.name,
        request=GetMessageClass(method.input_type),
        response=GetMessageClass(method.output_type),
        takes_stream=method.client_streaming,
        answers_stream=method.server_streaming,
    )
    for service in DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
"""All methods of all services, by their names."""

assert len(METHODS) == sum(
    len(service.methods) for service in DESCRIPTOR.services_by_name.values()
), "no two services have a method of the same name"
