"""Clients that common generators make of the description: they compile, and read each answer for what it is.

``make generators`` installs them. Without them, or Go's and Java's compilers, tests are skipped by name, but not in CI.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.needed import lacking
from tests.scenarios.demo import Demo, running_demo
from tests.sources import ROOT

SOURCES: Final = ROOT / "tests" / "generated"
MODULES: Final = ROOT / ".venv" / "node" / "node_modules"
PYTHON: Final = ROOT / ".venv" / "generators" / "bin"
TIMEOUT_S: Final = 240
JAR: Final = "openapi_generator_cli/openapi-generator.jar"
ANNOTATIONS: Final = Path("/usr/share/java/geronimo-annotation-1.3-spec.jar")
# Starting is most of what these programs do.
JAVA: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
SLOW_ORDERS: Final = ("HeySlow", "TypedSlow", "PythonSlow", "GoSlow", "JavaSlow")

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A demo whose gateway leaves some charges pending."""
    with running_demo(tmp_path_factory.mktemp("demo")) as demo:
        match = ({"endpoint": "charge", "order_id": order_id} for order_id in SLOW_ORDERS)
        demo.control("faults", {"script": [{"fault": "pending", "match": each, "times": 1} for each in match]})
        yield demo


@pytest.fixture(scope="module")
def folder(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the description, the stories and the packages."""
    folder = tmp_path_factory.mktemp("generated")
    shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
    (folder / "openapi.json").write_text(json.dumps(demo.document()))
    (folder / "node_modules").symlink_to(MODULES)
    return folder


def node(folder: Path, program: str, *arguments: str) -> None:
    """Runs a program of the packages; its output is the message where it fails."""
    if not MODULES.is_dir():
        lacking("the generators that Node runs are not installed: make generators")
    run(folder, str(MODULES / ".bin" / program), *arguments)


def run(folder: Path, *command: str, **more: str) -> str:
    """Runs a command in a folder, and gives what it prints."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1", **more},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


def generate(folder: Path, generator: str, *options: str, **properties: str) -> Path:
    """Has OpenAPI Generator make a client, without tests and pages; gives the generator itself, as a jar."""
    jar = next(PYTHON.parent.glob(f"lib/*/site-packages/{JAR}"), None)
    if jar is None:
        lacking("OpenAPI Generator is not installed: make generators")
    if shutil.which("javac") is None:
        lacking("no Java compiler: apt-get install default-jdk-headless")
    command = ["java", *JAVA, "-jar", str(jar), "generate", "-i", "openapi.json", "-g", generator, "-o", generator]
    settled = ",".join(f"{name}={value}" for name, value in properties.items())
    left_out = "apiTests=false,modelTests=false,apiDocs=false,modelDocs=false"
    printed = run(folder, *command, *options, "--additional-properties", settled, "--global-property", left_out)
    assert "COLLISION" not in printed
    return jar


def surroundings_of(demo: Demo) -> dict[str, str]:
    """Gives a story its service and its key."""
    return {"PAYRELAY": demo.address, "PAYRELAY_KEY": demo.key}


def test_clients_in_typescript_compile_and_read_each_answer(demo: Demo, folder: Path) -> None:
    """Of hey-api and of openapi-typescript: a charge, its repeat, a decline, a 202 that is no error, a refusal."""
    node(folder, "openapi-typescript", "openapi.json", "-o", "openapi.d.ts")
    node(folder, "openapi-ts")
    node(folder, "tsc", "-p", ".")
    seen = json.loads(run(folder, "node", "out/story.js", **surroundings_of(demo)))
    assert seen == {
        "hey_repeat_is_equal": True,
        "hey_id_is_whole": True,
        "hey_declined": "declined",
        "hey_open": "pending",
        "hey_open_is_error": False,
        "hey_wrong": ["amount"],
        "hey_payments": 1,
        "hey_has_next_page": True,
        "typed_paid": "TypedOrder1",
        "typed_declined": "declined",
        "typed_open": "pending",
    }


def test_a_client_in_python_reads_each_answer(demo: Demo, folder: Path) -> None:
    """Of openapi-python-client: each answer has the class of its meaning, and nothing of the API is left out."""
    (folder / "python.yaml").write_text("post_hooks: []\n")
    if not PYTHON.is_dir():
        lacking("openapi-python-client is not installed: make generators")
    generate = [str(PYTHON / "openapi-python-client"), "generate", "--path", "openapi.json"]
    options = ["--output-path", "python", "--config", "python.yaml", "--fail-on-warning"]
    run(folder, *generate, *options)
    printed = run(
        folder / "python", str(PYTHON / "python"), str(folder / "story.py.txt"), **surroundings_of(demo), PYTHONPATH="."
    )
    assert json.loads(printed) == {
        "paid": "ChargeAnswer",
        "repeat_is_equal": True,
        "declined": "Failure declined",
        "open": "Accepted pending",
        "wrong": "Failure ['amount']",
        "payments": 1,
    }


def test_a_client_in_go_reads_each_answer(demo: Demo, folder: Path) -> None:
    """Of OpenAPI Generator: no digit of a payment's number is cut, and a 202 is told by its status."""
    module = ("--git-host", "example.com", "--git-user-id", "payrelay", "--git-repo-id", "generated")
    # Without the first one its constants collide; without the second one it refuses members that it doesn't know.
    options = {"enumClassPrefix": "true", "disallowAdditionalPropertiesIfNotPresent": "false"}
    generate(folder, "go", *module, packageName="payrelay", **options)
    if shutil.which("go") is None:
        lacking("no Go compiler: apt-get install golang-go")
    (folder / "go" / "shop").mkdir()
    shutil.copy(folder / "story.go.txt", folder / "go" / "shop" / "main.go")
    kept = {
        "GOPATH": str(folder / "gopath"),
        "GOCACHE": str(folder / "gocache"),
        "GOPROXY": "off",
        "GOFLAGS": "-mod=mod",
    }
    seen = json.loads(run(folder / "go", "go", "run", "./shop", **surroundings_of(demo), **kept))
    assert seen == {
        "id_is_whole": True,
        "repeat_is_equal": True,
        "amount": 345.67,
        "declined": "declined",
        "open": 202,
    }


def test_a_client_in_java_reads_each_answer(demo: Demo, folder: Path) -> None:
    """Of OpenAPI Generator: no digit of a payment's number is cut, and a 202 is neither paid nor refused."""
    options = {"openApiNullable": "false", "annotationLibrary": "none"}
    jar = generate(folder, "java", "--library", "native", **options)
    if not ANNOTATIONS.is_file():
        lacking("no annotations for Java: apt-get install libgeronimo-annotation-1.3-spec-java")
    sources = [str(path) for path in (folder / "java" / "src" / "main").rglob("*.java")]
    shutil.copy(folder / "Story.java.txt", folder / "java" / "Story.java")
    classes = f"out:{jar}:{ANNOTATIONS}"
    compile_ = ["javac", *(f"-J{option}" for option in JAVA), "-proc:none", "-nowarn", "-d", "out", "-cp", classes]
    run(folder / "java", *compile_, "Story.java", *sources)
    seen = json.loads(run(folder / "java", "java", *JAVA, "-cp", classes, "Story", **surroundings_of(demo)))
    assert seen == {
        "id_is_whole": True,
        "repeat_is_equal": True,
        "amount": 345.67,
        "declined": "402 declined",
        "open": "0",
    }


def test_linters_find_no_error(folder: Path) -> None:
    """Redocly's and Spectral's recommended rules are what others judge a description by."""
    node(folder, "redocly", "lint", "openapi.json", "--config", "redocly.yaml")
    node(folder, "spectral", "lint", "openapi.json", "--fail-severity", "error")
