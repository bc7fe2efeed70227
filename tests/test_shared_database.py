"""The service on PostgreSQL as operators run it: behind a pooler, under a role that owns nothing, and over TLS."""

import asyncio
import base64
import datetime as dt
import io
import ipaddress
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import asyncpg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.needed import lacking
from tests.poolers import pooled_url, running_pgbouncer
from tests.postgresql_server import PostgresqlServer, ProgramsMissing, give_to_server, running_postgresql

from payrelay.api.http.request_log import json_log
from payrelay.app import running
from payrelay.clock import Clock
from payrelay.core.calls import Charge
from payrelay.core.database.schema_changes import AS_IT_IS
from payrelay.core.secret import Secret
from payrelay.errors import StoreError, StoreUnavailable, StoreUnusable
from payrelay.flows.access.issue_key import KeyRequest, issue_key
from payrelay.flows.payments.charge import charge
from payrelay.flows.relay import Request
from payrelay.settings import Settings, gateway_settings
from payrelay.store import open_database
from payrelay.store.engine.database import Statement, Unit, Value
from payrelay.store.engine.queries import query
from payrelay_simulator import DEFAULT_MERCHANT, Running, Simulator, demo_world
from payrelay_simulator import serve as serve_simulator
from payrelay_simulator.demo import CUSTOMER_TOKEN

pytestmark = [pytest.mark.postgresql, pytest.mark.story]

KEY: Final = Secret(base64.urlsafe_b64encode(b"2" * 32).decode())
AT_ONCE: Final = 12
ROLE: Final = """
    CREATE ROLE service LOGIN;
    GRANT USAGE ON SCHEMA {schema} TO service;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO service;
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO service
"""
"""As docs/postgresql.md has it."""


@pytest.fixture
async def simulated() -> AsyncIterator[Running]:
    """Gives a simulator with the demo's customers, on a port of its own."""
    simulator = Simulator()
    demo_world(simulator)
    async with serve_simulator(simulator) as running_simulator:
        yield running_simulator


def run(sql: str) -> Unit[Value]:
    """Runs one statement, and gives the first value."""
    rows = yield Statement(query(sql), ())
    return rows[0][0] if rows else None


def settings_of(url: str, base_url: str) -> Settings:
    """Gives settings for one account on a shared database."""
    gateway = gateway_settings(
        {
            "base_url": base_url,
            "app_id": DEFAULT_MERCHANT.app_id,
            "app_secret": DEFAULT_MERCHANT.app_secret,
            "rate_limit": "off",
        }
    )
    return Settings(database_url=Secret(url), encryption_key=KEY, gateways={"gateway": gateway})


async def charge_once(url: str, simulated: Running) -> None:
    """Charges some orders at once, each of them twice, with a service of its own."""
    log = json_log(io.BytesIO(), Clock())
    async with running(settings_of(url, simulated.base_url), clock=Clock(), log=log) as service:
        issued = await issue_key(service.credentials, Clock(), KeyRequest(principal="shop", environment="sandbox"))

        async def one(order_id: str) -> tuple[int, int]:
            call = Charge(
                authorize=False,
                order_id=order_id,
                items="Tea",
                currency="LKR",
                amount_minor=100,
                customer_token=CUSTOMER_TOKEN,
            )
            request = Request(
                gateway=service.relay.account("gateway"), credential=issued.credential, request_id=f"req_{order_id}"
            )
            first = await charge(service.relay, request, call)
            return first.http_status, (await charge(service.relay, request, call)).http_status

        orders = [f"A-{number}" for number in range(AT_ONCE)]
        assert await asyncio.gather(*map(one, orders)) == [(200, 200)] * AT_ONCE
    charged = [entry.order_id for entry in simulated.simulator.ledger() if entry.order_id in orders]
    assert sorted(charged) == sorted(orders)


async def test_a_pooler_in_transaction_mode_serves(postgresql_server: PostgresqlServer, simulated: Running) -> None:
    """There no session is ours: no setting, no lock and nothing prepared lasts until the next statement."""
    postgresql_server.create("pooled")
    try:
        with running_pgbouncer(postgresql_server) as folder:
            await charge_once(pooled_url(folder, "pooled"), simulated)
    except ProgramsMissing as missing:
        lacking(str(missing))
    finally:
        postgresql_server.drop("pooled")


async def test_a_role_that_reads_and_writes_rows_serves(empty_postgresql_url: str, simulated: Running) -> None:
    """The owner migrates; whoever takes over the service can drop, alter and add no table."""
    owned = await open_database(empty_postgresql_url, clock=Clock(), owner=True)
    await owned.close()
    settings = settings_of(empty_postgresql_url, simulated.base_url)
    async with running(settings, clock=Clock(), log=json_log(io.BytesIO(), Clock())):
        pass  # the upgrade steps
    owner = await asyncpg.connect(empty_postgresql_url)
    await owner.execute(ROLE.format(schema=await owner.fetchval("SELECT current_schema()")))
    url = empty_postgresql_url.replace("payrelay@", "service@")
    try:
        await charge_once(url, simulated)
        database = await open_database(url, clock=Clock(), owner=True, changes=AS_IT_IS)
        for sql in ("DROP TABLE operations", "ALTER TABLE history DISABLE TRIGGER ALL", "CREATE TABLE mine (x int)"):
            with pytest.raises(StoreError):
                await database.write(run(sql))
        with pytest.raises(StoreUnavailable, match="by its owner only"):
            await database.clear_files("data_keys_00")
        await database.close()
    finally:
        await owner.execute("DROP OWNED BY service; DROP ROLE service")
        await owner.close()


def certified(folder: Path, address: str) -> None:
    """Writes a certificate of its own for an address, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, address)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "server.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "server.key").touch(0o600)
    (folder / "server.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


async def test_tls_is_verified_as_the_url_says(tmp_path: Path) -> None:
    """``verify-full`` refuses a server whose certificate nobody vouches for, and ``require`` one that has none."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    other = tmp_path / "other"
    other.mkdir()
    certified(other, "127.0.0.1")
    with running_postgresql() as server:
        server.stop()
        certified(server.folder, "127.0.0.1")
        give_to_server(server.folder / "server.key")
        listening = ("listen_addresses=127.0.0.1", f"port={port}")
        files = (f"ssl_cert_file={server.folder}/server.crt", f"ssl_key_file={server.folder}/server.key")
        server.start(*listening, "ssl=on", *files)
        url = f"postgresql://payrelay@127.0.0.1:{port}/postgres"
        verified = await open_database(
            f"{url}?sslmode=verify-full&sslrootcert={server.folder}/server.crt", clock=Clock(), owner=True
        )
        assert await verified.read(run("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")) is True
        await verified.close()
        with pytest.raises(StoreUnusable):
            await open_database(f"{url}?sslmode=verify-full&sslrootcert={other}/server.crt", clock=Clock(), owner=True)
        server.stop()
        server.start(*listening)
        with pytest.raises(StoreUnusable):
            await open_database(f"{url}?sslmode=require", clock=Clock(), owner=True)
