"""Tokens for phones where several services share one database."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.draws import drawn_uuid
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.phones import data
from tests.scenarios.program import Program
from tests.scenarios.stories import assert_refused, fresh, settings_for
from tests.scenarios.waiting import until

if TYPE_CHECKING:
    from tests.conftest import PostgresqlServer

pytestmark = [pytest.mark.postgresql, pytest.mark.integration]


@pytest.fixture
def services(
    tmp_path: Path, postgresql_server: "PostgresqlServer", gateway: GatewayDouble
) -> Iterator[tuple[Program, Program]]:
    """Two services on a database of their own."""
    name = f"tokens_{drawn_uuid().hex}"
    postgresql_server.run("createdb", "-h", str(postgresql_server.folder), "-U", "payrelay", name)
    environment = settings_for(gateway) | {
        "PAYRELAY_DATABASE_URL": postgresql_server.url(name),
        "PAYRELAY_ENCRYPTION_KEY": base64.b64encode(bytes(range(32))).decode(),
    }
    programs = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        programs.append(Program(folder, environment))
    for program in programs:
        program.start()
    yield programs[0], programs[1]
    for program in programs:
        program.stop()


def test_a_token_counts_everywhere_and_ends_everywhere(services: tuple[Program, Program]) -> None:
    """Issued here it is good there at once, with a new signing key too; revoked here it is dead there in a second."""
    here, there = services
    server = here.client(here.new_key("shop"))
    first = data(server.post("client-tokens", {"order_id": fresh("order")}))
    assert there.client(first["token"]).get("operations").status == 200

    rotated = here.run("client-tokens", "rotate-key")
    assert rotated.returncode == 0, rotated.stderr
    made_there = data(there.client(server.key).post("client-tokens", {"order_id": fresh("order")}))
    assert here.client(made_there["token"]).get("operations").status == 200
    assert there.client(first["token"]).get("operations").status == 200

    assert server.delete(f"client-tokens/{first['id']}").status == 200
    phone = there.client(first["token"])
    until(lambda: phone.get("operations").status == 401, "it is refused there", deadline_s=1.5)
    assert_refused(phone.get("operations"), 401, "unauthenticated")
