import json
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from tests.cli.commands import ended, program, read_until

from payrelay.api.requests.router import Router
from payrelay.api.routes.table import ROUTES
from payrelay.demo.introduction import samples
from payrelay_simulator import Simulator, demo_world


def test_there_is_a_call_for_each_operation_of_the_interface() -> None:
    """A newcomer sees all that it can do; a route that is added is missed here."""
    calls = samples(demo_world(Simulator()))
    found = [(Router(ROUTES).find(call.path.strip("/").encode().split(b"/")), call.method) for call in calls]
    names = {each.methods[method].name for each, method in found if each is not None}

    relayed = {route.name for route in ROUTES if route.is_effect or route.is_read}
    assert names == relayed


@pytest.mark.story
@pytest.mark.skipif(shutil.which("curl") is None, reason="the calls are curl's")
def test_every_call_that_the_demo_prints_works_as_it_stands(tmp_path: Path) -> None:
    """It is the first thing that a newcomer does; twice, because people do things twice."""
    with program(tmp_path, "demo", "--port", "0") as demo:
        text = read_until(demo.stdout, "ends the")
        calls = re.findall(r"^curl .*?(?=\n\n)", text, re.MULTILINE | re.DOTALL)
        assert len(calls) == 9
        (key,) = re.findall(r"^KEY=\S+$", text, re.MULTILINE)
        for call in calls * 2:
            answered = subprocess.run(
                ["sh", "-c", f"{key}\n{call}"], capture_output=True, text=True, check=True, timeout=30
            )
            assert json.loads(answered.stdout)["status"] == 1

        listed = ended(tmp_path, "payments", "list")
        assert (listed.code, "DemoOrder3" in listed.out) == (0, True), "commands beside it find its database"
        again = subprocess.run(
            ["sh", "-c", f"{key}\n{calls[1]}"], capture_output=True, text=True, check=True, timeout=30
        )
        assert json.loads(again.stdout)["status"] == 1, "commands beside it leave the demo its database"

        demo.send_signal(signal.SIGINT)
        _, err = demo.communicate(timeout=30)
        assert (demo.returncode, err) == (0, "")


@pytest.mark.story
def test_the_demo_begins_anew_and_beside_another_one(tmp_path: Path) -> None:
    """A second start in the same folder works; one elsewhere takes another port where the usual one is taken."""
    (tmp_path / "other").mkdir()
    for _ in range(2):
        with program(tmp_path, "demo") as demo, program(tmp_path / "other", "demo") as other:
            addresses = {re.search(r"http://\S+", read_until(each.stdout, "service")) for each in (demo, other)}
            assert len({found[0] for found in addresses if found}) == 2
            for each in (demo, other):
                each.send_signal(signal.SIGTERM)
                each.communicate(timeout=30)
                assert each.returncode == 0


@pytest.mark.story
def test_a_second_demo_in_the_same_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    """It would remove the first one's data under it."""
    with program(tmp_path, "demo", "--port", "0") as demo:
        read_until(demo.stdout, "ends the")
        second = ended(tmp_path, "demo", "--port", "0")

        assert (second.code, second.err.count("\n")) == (2, 1)
        assert "another Payrelay process" in second.err
        demo.send_signal(signal.SIGINT)
        demo.communicate(timeout=30)
