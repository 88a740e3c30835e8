"""A real Kubernetes control plane: API server and controllers, on an etcd.

    with ControlPlane(tmp_path) as plane, plane.namespace() as namespace:
        plane.kube.apply(manifest, namespace)

It enforces RBAC, Pod Security and ServiceAccount tokens. It has no nodes: pods stay pending unless
the kubelet of these tests runs. It listens on the bridge, where pods in their own network
namespaces can reach it.
"""

import contextlib
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Self

from kafscale.operator.kube.api import CONFIG_MAPS, SERVICE_ACCOUNTS
from services.etcd_server import EtcdServer
from services.kubernetes import binaries
from services.kubernetes.credentials import ADMIN, AGGREGATOR, CONTROLLERS, Credentials
from services.kubernetes.kube_client import NAMESPACES, ApiError, KubeClient
from services.kubernetes.namespaces import GATEWAY, SERVICE_RANGE
from services.process import free_port

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
"""The label of a namespace that accepts only pods of the "restricted" standard."""
KUBERNETES_ADDRESS = "10.96.0.1"
"""Of the Service `kubernetes` in `default`: the first address of `SERVICE_RANGE`."""
TOKEN_S = 3600
READY_S_MAX = 60
PAUSE_S = 0.05

_NAMES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
_DISABLED_CONTROLLERS = (
    "node-lifecycle-controller",  # Nodes are simulated: no evictions from slow ones.
    "taint-eviction-controller",
    "persistentvolume-attach-detach-controller",  # Volumes are directories.
)


class ControlPlane:
    """A control plane that runs until the block ends, with all files in one directory."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.url = f"https://{GATEWAY}:{self.port}"
        hosts = [*_NAMES, "localhost", "127.0.0.1", GATEWAY, KUBERNETES_ADDRESS]
        self.credentials = Credentials(directory, self.url, hosts)
        self.ca_file = self.credentials.ca_file
        self.kubeconfig = self.credentials.kubeconfig(ADMIN)
        """Of a cluster administrator, for Helm and others."""
        self.kube = self.client(self.credentials.tokens[ADMIN])
        """A client with the same permissions."""
        self._directory = directory
        self._stack = contextlib.ExitStack()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            etcd = stack.enter_context(EtcdServer(self._directory))
            stack.callback(self._kill_all)
            self._start("kube-apiserver", self._api_server_options(etcd.members[0].endpoint))
            self._wait_until("kube-apiserver", self._is_ready)
            self._start("kube-controller-manager", self._controller_options())
            self._wait_until("kube-controller-manager", lambda: self._has_account("default"))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def client(self, token: str) -> KubeClient:
        return KubeClient(self.url, self.ca_file, token)

    def token(self, namespace: str, account: str) -> str:
        """A token of a ServiceAccount."""
        token_request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_S},
        }
        path = SERVICE_ACCOUNTS.path(namespace, account, "token")
        return self.kube.request("POST", path, token_request)["status"]["token"]

    @contextlib.contextmanager
    def namespace(self, *, labels: Mapping[str, str] | None = None) -> Iterator[str]:
        """A new namespace; it is deleted afterwards, without waiting for its content to go."""
        name = f"test-{secrets.token_hex(4)}"
        metadata = {"name": name, "labels": dict(labels or {})}
        self.kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        try:
            self._wait_until("kube-controller-manager", lambda: self._has_account(name))
            yield name
        finally:
            self.kube.delete(NAMESPACES, "", name)

    def logs(self, part: str) -> str:
        return self._log(part).read_text(errors="replace")

    def _api_server_options(self, etcd: str) -> dict[str, object]:
        files = self.credentials
        return {
            "etcd-servers": f"http://{etcd}",
            "advertise-address": GATEWAY,
            "secure-port": self.port,
            "tls-cert-file": files.server[0],
            "tls-private-key-file": files.server[1],
            "client-ca-file": files.ca_file,
            "token-auth-file": files.tokens_file,
            "authorization-mode": "RBAC",
            "allow-privileged": "true",
            "service-cluster-ip-range": SERVICE_RANGE,
            "service-account-issuer": f"https://{_NAMES[-1]}",
            "service-account-signing-key-file": files.accounts_key,
            "service-account-key-file": files.accounts_key.with_suffix(".crt"),
            "proxy-client-cert-file": files.aggregator[0],
            "proxy-client-key-file": files.aggregator[1],
            "requestheader-client-ca-file": files.ca_file,
            "requestheader-allowed-names": AGGREGATOR,
            "requestheader-username-headers": "X-Remote-User",
            "requestheader-group-headers": "X-Remote-Group",
            "requestheader-extra-headers-prefix": "X-Remote-Extra-",
            # Straight to endpoints: ClusterIPs work only where a proxy runs.
            "enable-aggregator-routing": "true",
        }

    def _controller_options(self) -> dict[str, object]:
        return {
            "kubeconfig": self.credentials.kubeconfig(CONTROLLERS),
            "use-service-account-credentials": "true",
            "service-account-private-key-file": self.credentials.accounts_key,
            "root-ca-file": self.ca_file,
            "controllers": ",".join(["*", *(f"-{name}" for name in _DISABLED_CONTROLLERS)]),
            "leader-elect": "false",
            "secure-port": "0",
            "horizontal-pod-autoscaler-sync-period": "2s",
            "horizontal-pod-autoscaler-downscale-stabilization": "5s",
            "horizontal-pod-autoscaler-cpu-initialization-period": "1s",
            "horizontal-pod-autoscaler-initial-readiness-delay": "1s",
        }

    def _start(self, part: str, options: Mapping[str, object]) -> None:
        command = [binaries.kube(), part, *(f"--{name}={value}" for name, value in options.items())]
        with self._log(part).open("wb") as output:
            self._processes[part] = subprocess.Popen(  # noqa: S603 - our own command.
                command, stdout=output, stderr=subprocess.STDOUT, cwd=self._directory
            )

    def _wait_until(self, part: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_S_MAX
        while not condition():
            if self._processes[part].poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{part} failed or timed out: {self.logs(part)[-4000:]}")
            time.sleep(PAUSE_S)

    def _is_ready(self) -> bool:
        try:
            return self.kube.request("GET", "/readyz") == "ok"
        except (OSError, ApiError):
            return False

    def _has_account(self, namespace: str) -> bool:
        """Whether pods can be created: they need the default account and the CA."""
        account = self.kube.get(SERVICE_ACCOUNTS, namespace, "default")
        ca_file = self.kube.get(CONFIG_MAPS, namespace, "kube-root-ca.crt")
        return account is not None and ca_file is not None

    def _kill_all(self) -> None:
        """Nothing is kept, so nothing has to stop in order."""
        for process in self._processes.values():
            process.kill()
            process.wait()

    def _log(self, part: str) -> Path:
        return self._directory / f"{part}.log"
