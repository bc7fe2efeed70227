"""The shop beside the demo: in which language it is, and what it is told."""

import re
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.sources import ROOT

from payrelay.demo.parts import DemoAddresses
from payrelay.demo.shop import command_of, drawn_for, variables_of

EXAMPLE: Final = ROOT / "examples" / "shop"


@pytest.mark.parametrize(
    ("program", "command"),
    [
        ("shop.py", [sys.executable, "shop.py"]),
        ("shop.mjs", ["node", "shop.mjs"]),
        ("index.php", ["php", "-S", "127.0.0.1:8091", "index.php"]),
    ],
)
def test_a_shop_is_run_by_what_its_language_needs(program: str, command: list[str]) -> None:
    """Who writes PHP or JavaScript sees the shop in that language with the same one command."""
    assert command_of(Path(program), "127.0.0.1", 8091) == command


@pytest.mark.parametrize("program", ["python/shop.py", "node/shop.mjs", "php/index.php"])
def test_a_shop_is_told_all_that_it_reads(program: str) -> None:
    """A variable that the demo forgets would stop that shop at its start, or leave its news unsigned."""
    addresses = DemoAddresses(host="127.0.0.1", reached_at="127.0.0.1", port=8080, shop=Path(program), shop_port=8091)
    told = variables_of(addresses, "prk_1", "http://127.0.0.1:8600", drawn_for("whsec_1"))
    read = set(re.findall(r"\b(?:PAYRELAY|SHOP)(?:_[A-Z]+)*\b", (EXAMPLE / program).read_text())) - {"SHOP_AUTOLOAD"}

    assert read - {"SHOP"} == set(told) - {"HOST", "PORT"}
    assert told["PAYRELAY"] == "http://127.0.0.1:8080/gateway/api"
    assert Path(told["SHOP_DATA"]).is_absolute()


def test_each_demo_has_a_secret_of_its_own() -> None:
    """A phone's cookie of an earlier demo must lead to nobody's payments in this one."""
    addresses = DemoAddresses(host="127.0.0.1", reached_at="127.0.0.1", port=8080, shop=Path("shop.py"), shop_port=8091)

    assert (
        len(
            {
                variables_of(addresses, "prk_1", "http://127.0.0.1:8600", drawn_for("whsec_1"))["SHOP_SECRET"]
                for _ in range(3)
            }
        )
        == 3
    )
