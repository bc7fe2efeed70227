import json
from pathlib import Path

import pytest
from tests.cli.commands import Run

pytestmark = pytest.mark.usefixtures("upgraded_database", "_principal")

GATEWAY = {
    "PAYRELAY_GATEWAYS__SHOP__APP_ID": "app",
    "PAYRELAY_GATEWAYS__SHOP__APP_SECRET": "secret",
    "PAYRELAY_GATEWAYS__SHOP__MERCHANT_ID": "merchant",
}
ADD = ("endpoints", "add", "https://shop.example/events", "--name", "shop")


@pytest.fixture
def _principal(run: Run, upgraded_database: Path) -> None:  # noqa: ARG001, the key is stored in it
    """Makes the key that the shop's principal has."""
    assert run("keys", "create", "--name", "shop", **GATEWAY).code == 0


def test_an_endpoint_is_added_listed_rotated_tried_and_removed(run: Run) -> None:
    """Id and secret stand alone on standard output, so that a script can take them."""
    added = run(*ADD, "--type", "operation.*", "--label", "orders", **GATEWAY)
    endpoint_id, secret = added.out.split()
    assert (added.code, endpoint_id[:4], secret[:6]) == (0, "end_", "whsec_")
    [listed] = json.loads(run("endpoints", "list", "--json", **GATEWAY).out)
    assert (listed["id"], listed["types"], listed["principal"]) == (endpoint_id, ["operation.*"], "shop")
    shown = run("endpoints", "list", **GATEWAY)
    assert endpoint_id in shown.out
    assert "https://shop.example/events" in shown.out
    assert shown.err == ""
    rotated = run("endpoints", "rotate", endpoint_id, **GATEWAY)
    assert rotated.out.startswith("whsec_")
    assert rotated.out.strip() != secret
    tried = run("endpoints", "test", endpoint_id, **GATEWAY)
    assert (tried.code, tried.err[:4]) == (0, "evt_")
    replayed = run("endpoints", "replay", endpoint_id, "--since", "2026-01-01T00:00:00Z", **GATEWAY)
    assert (replayed.code, replayed.err) == (0, "0 events are sent again by a running server.\n")
    assert json.loads(run("endpoints", "deliveries", endpoint_id, "--json", **GATEWAY).out) == []
    assert run("endpoints", "deliveries", endpoint_id, **GATEWAY).code == 0
    assert run("endpoints", "remove", endpoint_id, **GATEWAY).code == 0
    assert json.loads(run("endpoints", "list", "--json", **GATEWAY).out) == []
    assert run("endpoints", "list", **GATEWAY).out == "Nothing here: no endpoint is registered.\n"


@pytest.mark.parametrize("command", ["remove", "rotate", "test", "deliveries"])
def test_one_that_is_not_there_is_named(run: Run, command: str) -> None:
    """Exit code 2, as of every command that finds nothing of that name."""
    ran = run("endpoints", command, "end_1", **GATEWAY)
    assert (ran.code, ran.err) == (2, "payrelay: there is no endpoint end_1\n")
    assert run("endpoints", "replay", "end_1", "evt_1", **GATEWAY).code == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("endpoints", "add", "http://shop.example/", "--name", "shop"), "url must be an https address"),
        ((*ADD, "--type", "operations.*"), "types[0] must be"),
        ((*ADD, "--account", "other"), "no gateway account called other"),
        (("endpoints", "add", "https://shop.example/events", "--name", "shpo"), "there is no principal shpo"),
        (("events", "list", "--name", "shpo"), "there is no principal shpo"),
        (("endpoints", "replay", "end_1"), "--since"),
        (("endpoints", "replay", "end_1", "--since", "soon"), "--since must be a moment"),
        (("events", "list", "--name", "shop", "--type", "x"), "must be *"),
        (("events", "list", "--name", "shop", "--account", "other"), "no gateway account called other"),
    ],
)
def test_what_is_wrong_is_one_line(run: Run, arguments: tuple[str, ...], words: str) -> None:
    """It names what to mend."""
    ran = run(*arguments, **GATEWAY)
    assert ran.code != 0
    assert ran.err.startswith("payrelay: ")
    assert words in ran.err
    assert ran.err.count("\n") == 1


def test_without_a_gateway_the_list_of_events_says_so(run: Run) -> None:
    """Nobody can name an account where there is none."""
    assert run("events", "list", "--name", "shop").err == "payrelay: no gateway is configured\n"


def test_events_are_listed(run: Run) -> None:
    """Those that were published; a command publishes none."""
    assert json.loads(run("events", "list", "--name", "shop", "--json", **GATEWAY).out) == []
    assert run("events", "list", "--name", "shop", "--subject", "operation:op_1", **GATEWAY).code == 0


def test_an_account_must_be_named_where_there_are_several(run: Run) -> None:
    """Whose events it is about is nothing to guess."""
    other = {name.replace("SHOP", "OTHER"): f"{value}-2" for name, value in GATEWAY.items()}
    ran = run(*ADD, **GATEWAY, **other)
    assert (ran.code, ran.err) == (2, "payrelay: --account is missing: name one of shop, other\n")
