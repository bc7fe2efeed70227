"""The samples for phones as they stand in docs/apps.md: Kotlin's compiled and run, Dart's and Swift's parsed.

``make generators`` installs what is needed, and CI does. No package index has a compiler of Dart or Swift.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from clients.conformance.proxy import Proxy, Script
from clients.conformance.service import ACCOUNT, Service
from tests.doc_blocks import code_of
from tests.needed import lacking
from tests.sources import ROOT

HERE: Final = Path(__file__).parent / "phones"
GENERATORS: Final = ROOT / ".venv" / "generators"
PARTS: Final = (
    ROOT / ".venv" / "node" / "node_modules" / "allure-commandline" / "dist" / "plugins" / "jira-plugin" / "lib"
)
"""A program of Node's index that happens to bring OkHttp, which no index has by itself."""
ANDROID_JSON: Final = Path("/usr/share/java/com.android.json.jar")
JAVA: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
SHOWN: Final = "We are waiting for your payment. Please do not pay again."
HELD: Final = {"code": "needs_attention", "retry": "after", "request_id": "req_1"}

pytestmark = pytest.mark.integration


def sample(language: str) -> str:
    """The code of the page in a language."""
    (code,) = code_of(ROOT / "docs" / "apps.md", language)
    return code


def run(*command: str, cwd: Path | None = None, told: str = "") -> str:
    """Runs a command; what it says is in the failure."""
    done = subprocess.run(command, cwd=cwd, input=told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The compiled sample with an app around it, as a command."""
    if shutil.which("javac") is None or not ANDROID_JSON.is_file():
        lacking("no Java or Android's JSON: apt-get install default-jdk-headless libandroid-json-java")
    jars = [str(path) for path in GENERATORS.glob("lib/*/site-packages/run_kotlin_kernel/jars/*.jar")]
    used = [*jars, *map(str, PARTS.glob("ok*.jar")), str(ANDROID_JSON)]
    if len(used) == 1:
        lacking("Kotlin is not installed: make generators")
    folder = tmp_path_factory.mktemp("kotlin")
    (folder / "Ask.kt").write_text(sample("kotlin"))
    shutil.copy(HERE / "Shop.kt.txt", folder / "Shop.kt")
    compiler = ["java", *JAVA, "-cp", ":".join(jars), "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler"]
    options = ["-no-stdlib", "-no-reflect", "-Werror", "-cp", ":".join(used), "-d", "classes"]
    run(*compiler, *options, "Ask.kt", "Shop.kt", cwd=folder)
    return ["java", *JAVA, "-cp", ":".join([*used, str(folder / "classes")]), "ShopKt"]


def order(name: str, card: str) -> dict[str, Any]:
    """A charge as an app sends it."""
    common = {"type": "PAYMENT", "items": "Tea", "currency": "LKR", "amount": 345.67}
    return {**common, "order_id": name, "customer_token": card * 8}


def test_kotlin_pays_once_and_says_what_a_customer_can_read(app: list[str], service: Service) -> None:
    """Replies are lost, a card is declined, a person must decide, the service is busy: one charge, and no silence."""
    cards = [{"customer_token": "C0FE" * 8}, {"customer_token": "DEC7" * 8, "decline": "do_not_honor"}]
    service.simulate("POST", "seed_data", {"customers": cards})
    orders = [
        order("KotlinLost", "C0FE"),
        order("KotlinDeclined", "DEC7"),
        order("KotlinHeld", "C0FE"),
        order("KotlinLate", "C0FE"),
    ]
    held = {"status": 0, "msg": "A person decides.", "data": None, "error": HELD}
    faults: dict[int, dict[str, Any]] = {
        1: {"do": "drop_after"},
        2: {"do": "cut"},
        5: {"do": "answer", "status": 202, "body": held},
        6: {"do": "answer", "status": 503, "text": "<h1>Busy</h1>", "headers": {"Retry-After": "120"}},
    }
    script = Script(faults=faults, kill=lambda: None, has_stored=lambda _: True)
    with Proxy(service.port) as proxy:
        proxy.follow(script)
        seen = json.loads(run(*app, f"{proxy.address}{ACCOUNT}", service.key, json.dumps(orders)))

    ledger = service.simulate("GET", "ledger?count=10000")["entries"]
    (charge,) = [entry for entry in ledger if entry["order_id"].startswith("Kotlin")]
    assert seen[0] == {"code": 200, "payment": charge["payment_id"]}
    assert seen[1]["code"] == 402
    assert seen[2:] == [{"shown": SHOWN}, {"shown": SHOWN}]
    assert [each.key for each in script.seen] == ["KotlinLost"] * 3 + ["KotlinDeclined", "KotlinHeld", "KotlinLate"]


@pytest.mark.parametrize("language", ["dart", "swift"])
def test_a_sample_is_of_its_language(language: str) -> None:
    """A slip of the pen that a compiler would refuse at its first look is found without one."""
    python = GENERATORS / "bin" / "python"
    if not python.is_file():
        lacking("the grammars are not installed: make generators")
    parse = (str(python), str(HERE / "parse.py.txt"), language)
    assert run(*parse, told=sample(language)) == ""
    assert run(*parse, told=sample(language).replace("{", "(", 1)) != ""
