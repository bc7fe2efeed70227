"""The samples of proxies in front of the real program: who calls is known, a stream passes, and metrics stay inside."""

import datetime as dt
import http.client
import json
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.deploy.programs import DEPLOY, program, said_by
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import Program, free_port
from tests.scenarios.stories import Scene, charge_body, fresh, settings_for
from tests.scenarios.waiting import until

SITE = "pay.example.com"
STOP_S = 30.0  # longer than the grace that the samples give to what is under way


@dataclass(frozen=True, kw_only=True)
class Proxied:
    """A service behind a proxy, and the proxy's port with TLS."""

    scene: Scene
    port: int
    trusted: ssl.SSLContext

    def connection(self) -> http.client.HTTPSConnection:
        """A connection to the proxy, as a client of the site has it."""
        return http.client.HTTPSConnection("localhost", self.port, timeout=10, context=self.trusted)

    def headers(self, **more: str) -> dict[str, str]:
        """The headers of a caller with a key."""
        return {"Host": SITE, "Authorization": f"Bearer {self.scene.client.key}"} | more


def certificate(folder: Path) -> tuple[Path, Path]:
    """Makes a certificate for this machine and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    chain, private = folder / "fullchain.pem", folder / "privkey.pem"
    chain.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return chain, private


def nginx_command(folder: Path, port: int, *upstreams: int) -> list[str]:
    """Puts the sample into a folder of a test's own: other ports and paths, and the same of everything else."""
    text = (DEPLOY / "nginx/payrelay.conf").read_text()
    servers = "".join(f"    server 127.0.0.1:{each} max_fails=0;\n" for each in upstreams)
    text = text.replace("    server 127.0.0.1:8081 max_fails=0;\n", servers)
    for number in (8082, 8083):
        text = text.replace(f"    server 127.0.0.1:{number} max_fails=0;\n", "")
    text = text.replace("listen 443", f"listen 127.0.0.1:{port}").replace(
        "listen 80;", f"listen 127.0.0.1:{free_port()};"
    )
    text = "\n".join(line for line in text.splitlines() if "listen [::]" not in line)
    text = text.replace("/etc/ssl/payrelay", str(folder))
    places = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    head = f"pid {folder}/pid; error_log {folder}/error.log; daemon off; events {{}}"
    whole = f"{head} http {{ access_log off; {places}\n{text}\n}}"
    (folder / "nginx.conf").write_text(whole)
    command = [program("nginx"), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    said_by(*command, "-t")
    return command


def caddy_command(folder: Path, port: int, *upstreams: int) -> list[str]:
    """Puts the sample into a folder of a test's own, with a certificate of ours, which a test can't fetch."""
    text = (DEPLOY / "caddy/Caddyfile").read_text()
    text = text.replace(
        "\tgrace_period", f"\tadmin off\n\tauto_https off\n\tstorage file_system {folder}/data\n\tgrace_period", 1
    )
    text = text.replace(
        "{$PAYRELAY_SITE:pay.example.com} {",
        f"https://localhost:{port}, https://{SITE}:{port} {{\n\tbind 127.0.0.1\n"
        f"\ttls {folder}/fullchain.pem {folder}/privkey.pem",
    )
    text = text.replace(
        "{$PAYRELAY_UPSTREAMS:127.0.0.1:8081 127.0.0.1:8082 127.0.0.1:8083}",
        " ".join(f"127.0.0.1:{each}" for each in upstreams),
    )
    (folder / "Caddyfile").write_text(text)
    command = [program("caddy"), "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]
    said_by(command[0], "validate", *command[2:])
    return command


COMMANDS = {"nginx": nginx_command, "caddy": caddy_command}


@pytest.fixture(scope="module", params=COMMANDS)
def proxied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    """Starts a service with a scripted gateway, and a proxy in front of it, as its sample says."""
    program(request.param)
    folder, port = tmp_path_factory.mktemp(request.param), free_port()
    chain, _ = certificate(folder)
    with GatewayDouble() as gateway:
        service = Program(folder, settings_for(gateway) | {"PAYRELAY_TRUSTED_PROXIES": "127.0.0.1"})
        key = service.new_key("shop")
        service.start()
        with (folder / "proxy.log").open("ab") as log:
            proxy = subprocess.Popen(
                COMMANDS[request.param](folder, port, service.port), stdout=log, stderr=log, cwd=folder
            )
        try:
            found = Proxied(
                scene=Scene(program=service, gateway=gateway, client=service.client(key)),
                port=port,
                trusted=ssl.create_default_context(cafile=str(chain)),
            )
            until(lambda: is_up(found), f"{request.param} answers: {(folder / 'proxy.log').read_text()}")
            yield found
        finally:
            proxy.terminate()
            proxy.wait(STOP_S)
            service.stop()


class Cutting(socketserver.StreamRequestHandler):
    """Answers health checks; takes every other request in, and closes the connection without an answer."""

    def handle(self) -> None:
        """Reads one request."""
        first = self.rfile.readline().decode()
        headers = http.client.parse_headers(self.rfile)
        body = self.rfile.read(int(headers.get("Content-Length", 0)))
        if "/health/" in first:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        else:
            self.server.taken.append(body)  # type: ignore[attr-defined]


@contextmanager
def cutting() -> Iterator[tuple[int, list[bytes]]]:
    """Runs an upstream that cuts requests off; gives its port, and the bodies that it took."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Cutting) as server:
        taken: list[bytes] = []
        server.taken = taken  # type: ignore[attr-defined]
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield server.server_address[1], taken
        finally:
            server.shutdown()
            serving.join()


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_process_took_is_sent_to_no_other(tmp_path: Path, name: str) -> None:
    """A charge without a key that goes to a second process too may be a second charge; a refused connection is none."""
    program(name)
    chain, _ = certificate(tmp_path)
    port, trusted = free_port(), ssl.create_default_context(cafile=str(chain))
    with cutting() as (one, first), cutting() as (other, second), (tmp_path / "proxy.log").open("ab") as log:
        command = COMMANDS[name](tmp_path, port, free_port(), one, other)
        with subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path) as proxy:
            try:
                until(lambda: posted(port, trusted, b"up?") is not None, "the proxy answers")
                bodies = [f"charge {number}".encode() for number in range(6)]
                statuses = {posted(port, trusted, body) for body in bodies}
            finally:
                proxy.terminate()
    assert statuses == {http.HTTPStatus.BAD_GATEWAY}
    assert sorted(body for body in [*first, *second] if body in bodies) == bodies


def posted(port: int, trusted: ssl.SSLContext, body: bytes, path: str = "/gateway/api/payments/charge") -> int | None:
    """Posts to the site; gives the status, or None where nobody listens."""
    connection = http.client.HTTPSConnection("localhost", port, timeout=10, context=trusted)
    try:
        connection.request("POST", path, body, headers={"Host": SITE})
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()


def is_up(proxied: Proxied) -> bool:
    """True once the proxy answers for the service."""
    connection = proxied.connection()
    try:
        connection.request("GET", "/health/ready", headers={"Host": SITE})
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()


def asked(proxied: Proxied, path: str, **headers: str) -> tuple[int, bytes]:
    """Asks through the proxy; gives the status and the body."""
    connection = proxied.connection()
    try:
        connection.request("GET", path, headers=proxied.headers(**headers))
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


def test_a_client_cannot_name_its_own_address(proxied: Proxied) -> None:
    """The service trusts the proxy, which must not hand on what the client wrote: limits are by address."""
    asked(
        proxied, "/gateway/api/subscriptions/12345", **{"X-Forwarded-For": "203.0.113.9", "X-Request-Id": "who-is-it"}
    )

    def line() -> dict[str, object] | None:
        lines = [json.loads(text) for text in proxied.scene.program.log().splitlines() if text.startswith("{")]
        return next((each for each in lines if each.get("route", "").endswith("subscriptions/{id}")), None)

    until(lambda: line() is not None, "the request is in the log")
    found = line()
    assert found is not None
    assert found["client"] == "127.0.0.1"


def test_metrics_stay_inside(proxied: Proxied) -> None:
    """They tell amounts of business; only the inner network reads them."""
    assert asked(proxied, "/metrics")[0] == http.HTTPStatus.NOT_FOUND


def test_a_body_is_as_small_as_the_service_wants_it(proxied: Proxied) -> None:
    """The proxy refuses what the service would refuse, before it takes it in."""
    connection = proxied.connection()
    try:
        connection.request("POST", "/gateway/api/payments/charge", body=b" " * 200_000, headers=proxied.headers())
        assert connection.getresponse().status == http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    finally:
        connection.close()


def test_a_stream_passes_at_once(proxied: Proxied) -> None:
    """A proxy that gathers the answer first would give a customer's page nothing for ten minutes."""
    order_id = fresh("order")
    proxied.scene.gateway.script(payhere.CHARGE, order_id, payhere.cuts)
    operation_id = proxied.scene.client.charge(charge_body(order_id)).json["error"]["operation_id"]
    connection = proxied.connection()
    try:
        connection.request(
            "GET", f"/gateway/api/events/stream?subject=operation:{operation_id}", headers=proxied.headers()
        )
        reply = connection.getresponse()
        assert (reply.status, reply.getheader("Content-Type")) == (200, "text/event-stream")
        told = reply.readline()
        while not told.startswith(b"event:"):
            told = reply.readline()
        assert told == b"event: operation.unknown\n"  # and the stream goes on: the operation is not over
    finally:
        connection.close()
