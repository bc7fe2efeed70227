"""The document against the service: whatever it allows is taken, whatever it forbids is refused, and nothing breaks."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.draws import depth, examples
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import Program, account, surroundings
from tests.scenarios.stories import Scene

SCHEMATHESIS = Path(sys.executable).parent / "st"
HOOKS = Path(__file__).with_name("fuzz_hooks.py")
EXAMPLES = os.environ.get("TEST_FUZZ_EXAMPLES", str(examples(8)))  # for each operation and phase
SEED = os.environ.get("TEST_FUZZ_SEED", "1")  # the same requests at each check; another seed to search further
TIMEOUT_S = 900 * max(1, depth())
"""However few examples there are, the fuzzer's coverage phase alone sends each operation 16 to some 200 requests."""

CONFIGURATION = f"""
hooks = "{HOOKS}"
[auth.openapi.key]
bearer = "${{FUZZER_KEY}}"
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", "401", "403", "404", "409", "410", "429", "5xx"]
"""


@pytest.fixture(scope="module")
def scene(folder: Path, gateway: GatewayDouble) -> Iterator[Scene]:
    """A service that can do all that the document tells of: a live account, with all that checkouts need."""
    more = {"PAYRELAY_PUBLIC_URL": "https://pay.example", "PAYRELAY_RETURN_LINKS": "myshop://"}
    more |= {"PAYRELAY_TRUSTED_PROXIES": "127.0.0.0/8"}
    program = Program(folder, account("gateway", gateway.base_url, ENVIRONMENT="live") | more)
    key = program.new_key("shop")
    program.start()
    yield Scene(program=program, gateway=gateway, client=program.client(key))
    program.stop()


@pytest.mark.integration
@pytest.mark.fuzz
def test_the_document_and_the_service_agree(scene: Scene, tmp_path: Path) -> None:
    """Schemathesis, with every check it has: statuses, shapes, headers, methods, credentials, bad data refused."""
    configuration = tmp_path / "fuzz.toml"
    configuration.write_text(CONFIGURATION)
    document = f"http://127.0.0.1:{scene.program.port}/openapi.json"
    options = ["--max-examples", EXAMPLES, "--checks", "all", "--mode", "all", "--seed", SEED, "--no-color"]
    # The Allow of payments/charge names GET too, since it is an order's address as well; the document has that under
    # payments/{id}, where this check doesn't look. And DELETE cancels a subscription, which can still be read after it.
    options += ["--exclude-checks", "allow_header_conformance,use_after_free"]
    accounts = ["--include-path-regex", "^/gateway/", "--warnings", "off", "--continue-on-failure"]
    done = subprocess.run(
        [SCHEMATHESIS, "--config-file", configuration, "run", document, *options, *accounts],
        cwd=tmp_path,
        env=surroundings({"FUZZER_KEY": str(scene.client.key)}),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-2000:]
    assert "Traceback" not in scene.program.log()
