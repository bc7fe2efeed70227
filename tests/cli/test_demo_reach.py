"""How a phone reaches the demo: by which address, and with which code."""

import ipaddress
from contextlib import chdir
from pathlib import Path

import pytest

import payrelay_simulator
from payrelay.demo.parts import CONFIG, FOLDER, DemoAddresses, settings_of, write_config
from payrelay.demo.reach import code_of, is_this_machines_usual, reached_at
from payrelay.errors import SettingsError
from payrelay.settings import read_settings


@pytest.mark.parametrize("host", ["127.0.0.1", "192.168.1.5", "localhost", "::1", "shop.test"])
def test_a_host_that_is_named_is_the_one_that_is_opened(host: str) -> None:
    """Whoever names an address knows which of this machine's networks the phone is in."""
    assert reached_at(host) == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])  # noqa: S104 - every address of the machine is the case
def test_every_address_is_one_that_can_be_opened(host: str) -> None:
    """No browser opens 0.0.0.0: what is printed, signed and returned to must be an address of this machine."""
    assert not ipaddress.ip_address(reached_at(host)).is_unspecified


def test_only_an_address_that_a_phone_can_open_is_shown_as_a_code() -> None:
    """A code that leads a phone to itself would be the first thing that fails."""
    hosts = ["127.0.0.1", "::1", "localhost", "127.0.0.2", "192.168.1.5"]
    assert [is_this_machines_usual(host) for host in hosts] == [True, True, True, False, False]


def test_a_code_is_a_square_of_half_blocks_with_a_border() -> None:
    """A phone finds the code by its corners, and needs light around them."""
    lines = code_of("http://192.168.1.5:8090")
    width = len(lines[0])

    assert {len(line) for line in lines} == {width}
    assert set("".join(lines)) <= set(" \u2580\u2584\u2588")
    assert len(lines) == (width + 1) // 2
    assert set(lines[0]) == {"\u2588"}
    # The corner: a row of seven dark ones over a light inside.
    assert lines[1].startswith("\u2588\u2588 \u2584\u2584\u2584\u2584\u2584 ")
    assert code_of("http://192.168.1.6:8090") != lines


@pytest.mark.parametrize("host", ["8.8.8.8", "shop.example", "::1"])
async def test_a_host_that_no_browser_may_be_led_to_is_told_in_a_line(host: str, tmp_path: Path) -> None:
    """Payrelay sends secrets and customers in clear only to a simulator in the same room."""
    addresses = DemoAddresses(host=host, reached_at=host, port=8080, shop=tmp_path / "shop.py", shop_port=8091)
    async with payrelay_simulator.serve(payrelay_simulator.Simulator()) as simulated:
        with pytest.raises(SettingsError, match=r"--host takes a number of this machine's on a private network"):
            settings_of(simulated, addresses)


async def test_commands_find_the_demos_database_and_nobody_else_reads_its_secrets(tmp_path: Path) -> None:
    """Whoever types a command in the same folder works on the demo, and on nothing else."""
    addresses = DemoAddresses(host="127.0.0.1", reached_at="127.0.0.1", port=8080, shop=None, shop_port=8091)
    with chdir(tmp_path):
        FOLDER.mkdir()
        async with payrelay_simulator.serve(payrelay_simulator.Simulator()) as simulated:
            write_config(simulated, addresses)
            settings = settings_of(simulated, addresses)
        written, mode = read_settings({"PAYRELAY_CONFIG": str(CONFIG)}), CONFIG.stat().st_mode
    assert (written.database_url, mode & 0o077) == (settings.database_url, 0)
