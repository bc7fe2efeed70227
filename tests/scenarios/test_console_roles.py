"""Every route of the console by every kind of credential, at the running program: roles and keys of the API."""

import http.client
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Page
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import Program
from tests.scenarios.stories import settings_for
from tests.scenarios.test_console import opened_browser
from tests.scenarios.test_console_acts import signed_in

from payrelay.console.routes import ROUTES
from payrelay.console.web.route import ConsoleRoute, Entry
from payrelay.core.operators.roles import MAY, Role

INNER = [route for route in ROUTES if route.entry is Entry.OPEN]
NAMES = {
    "email": "nobody@shop.example",
    "session": "ses_1",
    "passkey": "psk_1",
    "order": "A-1",
    "operation": "op_1",
    "day": "2026-11-22",
    "noun": "account",
    "id": "gateway",
    "account": "gateway",
    "confirmation": "cnf_1",
}
STREAM = "/console/live"
"""Its answer has no end."""


@pytest.fixture
def program(tmp_path: Path, gateway: GatewayDouble) -> Iterator[Program]:
    """A program with a console, not started."""
    made = Program(tmp_path, settings_for(gateway) | {"PAYRELAY_CONSOLE__ENABLED": "true"})
    yield made
    made.kill()


def address(route: ConsoleRoute) -> str:
    """Gives an address of a route."""
    return route.path.format(**NAMES)


async def statuses(page: Page, program: Program, role: Role) -> dict[str, int]:
    """Asks by the address for every page, and with a form of the role's own for every act that it may not do."""
    base = f"http://127.0.0.1:{program.port}"
    await page.goto(f"{base}/console/account")
    token = await page.locator('input[name="token"]').first.input_value()
    found = {}
    for route in INNER:
        if route.method == "GET" and route.path != STREAM:
            answer = await page.request.get(base + address(route))
            found[f"GET {route.path}"] = answer.status
        elif route.method == "POST" and route.act not in MAY[role]:
            form: dict[str, str | float | bool] = {
                "token": token,
                "reason": "why",
                "email": "eve@shop.example",
                "name": "Eve",
                "role": "admin",
            }
            answer = await page.request.post(base + address(route), form=form, headers={"origin": base})
            found[f"POST {route.path}"] = answer.status
    return found


@pytest.mark.browser
@pytest.mark.integration
@pytest.mark.parametrize("role", Role)
async def test_no_way_leads_round_a_role(program: Program, role: Role) -> None:
    """Not by typing an address, nor by sending a form that no page of the role has; nothing is done by any of it."""
    program.start()
    async with opened_browser() as browser, signed_in(browser, program, "Ada", role) as page:
        found = await statuses(page, program, role)
    allowed = {f"{route.method} {route.path}": route.act in MAY[role] for route in INNER}

    assert {name: status == 403 for name, status in found.items()} == {name: not allowed[name] for name in found}
    assert {name for name, is_allowed in allowed.items() if not is_allowed} <= found.keys()
    assert "eve@shop.example" not in program.run("operators", "list").stdout


def answered(program: Program, method: str, path: str, **headers: str) -> tuple[int, str]:
    """Asks with these headers; gives the status, and where the answer leads."""
    connection = http.client.HTTPConnection("127.0.0.1", program.port, timeout=10)
    try:
        body = "reason=why" if method == "POST" else None
        own = {"content-type": "application/x-www-form-urlencoded"} if body else {}
        connection.request(method, path, body, own | {name.replace("_", "-"): each for name, each in headers.items()})
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.getheader("location", "")
    finally:
        connection.close()


def test_a_key_of_the_api_opens_no_page(program: Program) -> None:
    """Neither as a bearer nor as a cookie: whoever has a client's key is nobody here."""
    key = program.new_key("shop")
    program.start()
    for route in INNER:
        for headers in (
            {"Authorization": f"Bearer {key}"},
            {"Cookie": f"payrelay_console_session={key}"},
            {"Cookie": f"payrelay_console_session={key[-43:]}", "Authorization": f"Bearer {key}"},
        ):
            status, leads_to = answered(program, route.method, address(route), **headers)
            assert (status, leads_to.partition("?")[0]) == (303, "/console/sign-in"), route.path


@pytest.mark.browser
@pytest.mark.integration
async def test_a_session_of_the_console_opens_nothing_of_the_api(program: Program) -> None:
    """An administrator's cookie is no credential of the API, and no bearer either."""
    program.start()
    async with opened_browser() as browser, signed_in(browser, program, "Ada", Role.ADMIN) as page:
        cookies = await page.context.cookies()
    (token,) = [str(each["value"]) for each in cookies if str(each["name"]).endswith("session")]
    header = "; ".join(f"{each['name']}={each['value']}" for each in cookies)
    for path in ("/gateway/api/operations", "/gateway/api/payments/A-1", "/gateway/api/endpoints"):
        assert answered(program, "GET", path, Cookie=header)[0] == 401
        assert answered(program, "GET", path, Authorization=f"Bearer {token}")[0] == 401
