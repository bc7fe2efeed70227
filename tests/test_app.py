import asyncio
import base64
import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.samples import OPERATION

from payrelay.api.http.request_log import json_log
from payrelay.app import opened_database, remove_database, running, seal_of
from payrelay.clock import Clock
from payrelay.core.calls import Charge
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import JournalEntry, Kind, Operation, State
from payrelay.core.secret import Secret
from payrelay.errors import SettingsError, StoreUnusable
from payrelay.flows.access.issue_key import KeyRequest, issue_key
from payrelay.flows.payments.charge import charge
from payrelay.flows.relay import Request
from payrelay.gateways.payhere.account import BASE_URLS
from payrelay.gateways.payhere.kind import account_of
from payrelay.settings import Settings, gateway_settings
from payrelay.settings.identity import IdentitySettings
from payrelay_simulator import DEFAULT_MERCHANT, Running, Simulator, demo_world
from payrelay_simulator import serve as serve_simulator
from payrelay_simulator.demo import CUSTOMER_TOKEN

OTHER_KEY = Secret(base64.urlsafe_b64encode(b"2" * 32).decode())
LOG = json_log(io.BytesIO(), Clock())


@pytest.fixture
async def simulated() -> AsyncIterator[Running]:
    """Gives a simulator with the demo's customers, on a port of its own."""
    simulator = Simulator()
    demo_world(simulator)
    async with serve_simulator(simulator) as running_simulator:
        yield running_simulator


def settings_of(folder: Path, base_url: str = "http://127.0.0.1:9") -> Settings:
    """Gives settings for one account and an embedded database."""
    gateway = gateway_settings(
        {"base_url": base_url, "app_id": DEFAULT_MERCHANT.app_id, "app_secret": DEFAULT_MERCHANT.app_secret}
    )
    return Settings(database_url=Secret(f"sqlite:///{folder}/payrelay.db"), gateways={"gateway": gateway})


def names_in(folder: Path) -> list[str]:
    """Gives the names of what lies in a folder."""
    return [path.name for path in folder.iterdir()]


def an_operation(state: State) -> Operation:
    """Gives an operation as it stands while it is worked on."""
    return Operation(
        id="op_1",
        account="gateway",
        merchant="m",
        principal="shop",
        kind=Kind.CHARGE,
        state=state,
        version=1,
        subject="order/A",
        guard="order/A",
        claim=None,
        claim_ends_at_ms=None,
        idempotency_key=None,
        fingerprint="0" * 64,
        request_id="req_1",
        order_id="A",
        payment_id=None,
        subscription_id=None,
        amount_minor=1,
        currency="LKR",
        result_ref=None,
        created_at_ms=0,
        updated_at_ms=0,
        send_by_ms=0,
    )


async def test_what_is_put_together_charges_a_customer_once(tmp_path: Path, simulated: Running) -> None:
    """Settings, store, gateway and story fit; the repeat is answered from the store and moves no money."""
    call = Charge(
        authorize=False, order_id="A-1", items="Tea", currency="LKR", amount_minor=100, customer_token=CUSTOMER_TOKEN
    )
    async with running(settings_of(tmp_path, simulated.base_url), clock=Clock(), log=LOG) as service:
        issued = await issue_key(service.credentials, Clock(), KeyRequest(principal="shop", environment="sandbox"))
        request = Request(account="gateway", credential=issued.credential, request_id="req_1")
        answers = [await charge(service.relay, request, call) for _ in range(2)]

    assert [answer.http_status for answer in answers] == [200, 200]
    assert answers[0].body == answers[1].body
    assert [entry.order_id for entry in simulated.simulator.ledger()].count("A-1") == 1


async def test_the_embedded_database_has_one_owner(tmp_path: Path) -> None:
    """Two services on one file would each believe to be the only one that sends."""
    async with running(settings_of(tmp_path), clock=Clock(), log=LOG):
        with pytest.raises(StoreUnusable, match="another Payrelay process"):
            async with running(settings_of(tmp_path), clock=Clock(), log=LOG):
                pass


async def test_what_has_ended_can_begin_again(tmp_path: Path) -> None:
    """All is given back at the end: the lock, the file, the key that was made at the first start."""
    for _ in range(2):
        async with running(settings_of(tmp_path), clock=Clock(), log=LOG) as service:
            assert service.recovered == 0

    assert (tmp_path / "payrelay.db.key").stat().st_mode & 0o777 == 0o600


async def test_another_key_is_refused_at_the_start(tmp_path: Path) -> None:
    """Noticed later, every stored answer would be lost to the clients that ask for it."""
    settings = settings_of(tmp_path)
    async with running(settings, clock=Clock(), log=LOG):
        pass

    with pytest.raises(StoreUnusable, match="PAYRELAY_ENCRYPTION_KEY is not the key"):
        async with running(settings.model_copy(update={"encryption_key": OTHER_KEY}), clock=Clock(), log=LOG):
            pass


async def test_operations_of_an_earlier_process_are_recovered_before_the_first_request(tmp_path: Path) -> None:
    """An operation that may have been sent is unknown from the first moment on, and not forgotten."""
    settings = settings_of(tmp_path)
    operation = an_operation(State.SENDING)
    line = JournalEntry(version=1, at_ms=0, event=None, state=State.SENDING, evidence=Evidence())
    call = Charge(authorize=False, order_id="A", items="x", currency="LKR", amount_minor=1, customer_token="t")
    async with running(settings, clock=Clock(), log=LOG) as service:
        await service.relay.journal.accept(operation, line, call, conflicts_with=None, now_ms=0)

    async with running(settings, clock=Clock(), log=LOG) as service:
        found = await service.relay.journal.get(operation.id)

        assert service.recovered == 1
        assert found is not None
        assert found.state is State.UNKNOWN


async def test_without_a_gateway_it_does_not_start(tmp_path: Path) -> None:
    """And nothing is opened for it."""
    with pytest.raises(SettingsError, match="no gateway is configured"):
        async with running(settings_of(tmp_path).model_copy(update={"gateways": {}}), clock=Clock(), log=LOG):
            pass

    assert names_in(tmp_path) == []


@pytest.mark.parametrize("environment", ["sandbox", "live"])
def test_the_environment_chooses_the_gateways_address(environment: str) -> None:
    """Test money never meets the real gateway, unless somebody says so."""
    gateway = gateway_settings({"app_id": "x", "app_secret": "y", "environment": environment})

    assert account_of(gateway.common("gateway"), gateway).base_url == BASE_URLS[environment]


@pytest.mark.postgresql
async def test_a_shared_database_brings_no_key(tmp_path: Path, postgresql_url: str) -> None:
    """A key that each process made for itself would open nothing of the others'."""
    settings = settings_of(tmp_path).model_copy(update={"database_url": Secret(postgresql_url)})
    async with opened_database(settings, Clock(), is_owner=False) as database:
        with pytest.raises(SettingsError, match=r"^PAYRELAY_ENCRYPTION_KEY is missing"):
            await seal_of(settings, database)


async def test_background_work_is_ended_with_the_service(tmp_path: Path) -> None:
    """A stop that waits for ever is ended by force, and then nothing is finished."""
    output = io.BytesIO()
    async with running(settings_of(tmp_path), clock=Clock(), log=json_log(output, Clock()), finish_s=0) as service:
        service.relay.background.start(asyncio.sleep(3600))  # never waited for

    assert b'"event":"work_left_behind"' in output.getvalue()


@pytest.mark.postgresql
async def test_several_processes_share_postgresql(tmp_path: Path, postgresql_url: str) -> None:
    """There two services run side by side on one database, with one key."""
    settings = settings_of(tmp_path).model_copy(
        update={"database_url": Secret(postgresql_url), "encryption_key": OTHER_KEY}
    )
    async with running(settings, clock=Clock(), log=LOG) as one, running(settings, clock=Clock(), log=LOG) as other:
        issued = await issue_key(one.credentials, Clock(), KeyRequest(principal="shop", environment="sandbox"))

        assert await other.credentials.get(issued.credential.id) == issued.credential


async def test_a_database_is_removed_with_its_marks(tmp_path: Path) -> None:
    """Marks that stay would stop the effects on the next database in its place."""
    settings = settings_of(tmp_path)
    for _ in range(2):
        async with running(settings, clock=Clock(), log=LOG) as service:
            service.relay.database.marks.note_operation(OPERATION)
        path = settings.embedded_path
        assert path is not None
        assert [each.suffix for each in (settings.marks_folder or path).iterdir()] == [".mark"]
        remove_database(path)
    async with running(settings, clock=Clock(), log=LOG) as service:
        assert service.relay.database.lost_commits.behind is None

    assert not (settings.marks_folder or tmp_path).exists()


@pytest.mark.parametrize(
    ("scope", "principal"), [("checkouts:create", "backend"), ("payments:read", None)], ids=["open pages", "only read"]
)
async def test_a_recovery_reckons_with_what_an_identity_providers_tokens_may_make(
    tmp_path: Path, scope: str, principal: str | None
) -> None:
    """They may have made what is lost, and need no key here."""
    own = {"jwks_url": "https://id.example/keys", "issuer": "https://id.example", "audience": "payrelay"}
    claims = {"order_claim": "order", "amount_claim": "amount", "currency_claim": "currency"}
    identity = IdentitySettings.model_validate({**own, **claims, "principal": "backend", "scopes": scope})
    settings = settings_of(tmp_path).model_copy(update={"identity": identity})
    async with running(settings, clock=Clock(), log=LOG) as service:
        assert service.relay.settings.apps_principal == principal
