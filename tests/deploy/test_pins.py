"""What a release is built with is pinned, by a command that looks everything up and makes nothing up."""

import hashlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from release.pins import OWN, Named, found_in
from tests.sources import ROOT

PINS: Final = ROOT / "release/pins.py"
NAMING: Final = frozenset({"uses", "image", "container", "driver-opts", "sbom"})
WORKFLOW: Final = """jobs:
  test:
    container: registry.example/tools/python:3.13
    steps:
      - uses: actions/checkout@v4
      - {name: else}
      - uses: "actions/cache/restore@v4"
      - uses: acme/publish@release/v1
      - uses: ./.github/actions/here
      - with:
          driver-opts: image=docker.io/library/builder:1
          sbom: generator=docker.io/library/scanner:1
"""
DOCKERFILE: Final = "ARG BASE=docker.io/library/python:3.13\nFROM ${BASE} AS build\nFROM ${BASE}\n"
COMPOSE: Final = """services:
  payrelay: {restart: always}
  store:
    image: ${STORE_IMAGE:-docker.io/library/postgres:15}
  own:
    image: ${PAYRELAY_IMAGE:-payrelay:0.1.0}
  app:
    image: ${APP_IMAGE:?yours}
"""
WORKFLOW_NAME: Final = ".github/workflows/release.yml"
DOCKERFILE_NAME: Final = "deploy/image/Dockerfile"
COMPOSE_NAME: Final = "deploy/compose/compose.yaml"
MANIFEST: Final = b'{"schemaVersion": 2, "manifests": []}'
DIGEST: Final = f"sha256:{hashlib.sha256(MANIFEST).hexdigest()}"


class ImageRegistry(ThreadingHTTPServer):
    """Has one manifest under each tag, for whoever has fetched a token."""

    told: str | None = DIGEST
    status = 200
    asked: list[tuple[str, str]]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.asked = []

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Conversation(BaseHTTPRequestHandler):
    server: ImageRegistry

    def do_GET(self) -> None:
        if self.path.startswith("/token?"):
            return self._answer(200, json.dumps({"token": "given"}).encode(), {})
        if self.headers.get("Authorization") != "Bearer given":
            challenge = f'Bearer realm="{self.server.address}/token",service="here",scope="repository:x:pull"'
            return self._answer(401, b"", {"WWW-Authenticate": challenge})
        self.server.asked.append((self.path, self.headers["Accept"]))
        told = {} if self.server.told is None else {"Docker-Content-Digest": self.server.told}
        return self._answer(self.server.status, MANIFEST, told)

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def registry() -> Iterator[ImageRegistry]:
    """Listens."""
    with ImageRegistry() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def git(folder: Path, *arguments: str) -> str:
    """Runs git as nobody in particular."""
    who = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.com")
    ran = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return ran.stdout.strip()


class Sources:
    """Sources that name actions and images, and repositories of those actions beside them."""

    def __init__(self, folder: Path) -> None:
        self.root, self.server = folder / "sources", folder / "server"
        for name, text in {
            ".github/workflows/release.yml": WORKFLOW,
            "deploy/image/Dockerfile": DOCKERFILE,
            "deploy/compose/compose.yaml": COMPOSE,
        }.items():
            path = self.root / name
            path.parent.mkdir(parents=True)
            path.write_text(text)
        self.commits = {name: self._repository(name) for name in ("actions/checkout", "actions/cache", "acme/publish")}

    def _repository(self, name: str) -> str:
        folder = self.server / name
        folder.mkdir(parents=True)
        git(folder, "init", "-q", "-b", "main")
        git(folder, "commit", "-q", "--allow-empty", "-m", "first")
        version = ("branch", "release/v1") if name.startswith("acme/") else ("tag", "-a", "v4", "-m", "annotated")
        git(folder, *version)
        return git(folder, "rev-parse", "HEAD")

    def text(self, name: str) -> str:
        """Reads one of the files."""
        return (self.root / name).read_text()

    def run(self, command: str, registry: ImageRegistry | None = None) -> tuple[int, str]:
        """Runs the command; gives its exit code and what it printed."""
        named = [f"--registry={name}={registry.address}" for name in ("docker.io", "registry.example") if registry]
        arguments = [command, "--root", str(self.root), "--git", f"file://{self.server}", *named]
        ran = subprocess.run([sys.executable, str(PINS), *arguments], check=False, capture_output=True, text=True)
        assert ran.stderr == ""
        return ran.returncode, ran.stdout


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    """Gives sources without a pin."""
    return Sources(tmp_path)


def test_one_command_pins_all_and_a_second_changes_nothing(sources: Sources, registry: ImageRegistry) -> None:
    """Actions by the commit that a tag or a branch leads to, images by the digest of what the registry sends."""
    code, said = sources.run("check")
    assert (code, said.count("not pinned: ")) == (1, 8)
    code, said = sources.run("write", registry)
    assert code == 0, said
    checkout, cache, publish = (sources.commits[name] for name in ("actions/checkout", "actions/cache", "acme/publish"))
    assert sources.text(".github/workflows/release.yml") == WORKFLOW.replace(
        "checkout@v4", f"checkout@{checkout} # v4"
    ).replace('"actions/cache/restore@v4"', f"actions/cache/restore@{cache} # v4").replace(
        "publish@release/v1", f"publish@{publish} # release/v1"
    ).replace("python:3.13", f"python:3.13@{DIGEST}").replace(":1\n", f":1@{DIGEST}\n")
    assert sources.text("deploy/image/Dockerfile") == DOCKERFILE.replace("python:3.13", f"python:3.13@{DIGEST}")
    assert sources.text("deploy/compose/compose.yaml") == COMPOSE.replace("postgres:15", f"postgres:15@{DIGEST}")
    assert {path for path, _ in registry.asked} == {
        "/v2/library/python/manifests/3.13",
        "/v2/library/postgres/manifests/15",
        "/v2/tools/python/manifests/3.13",
        "/v2/library/builder/manifests/1",
        "/v2/library/scanner/manifests/1",
    }
    assert all("image.index" in accept for _, accept in registry.asked)
    pinned = [sources.text(name) for name in ("deploy/image/Dockerfile", ".github/workflows/release.yml")]

    assert sources.run("check") == (0, "0 actions and images are not pinned\n")
    assert sources.run("write", registry) == (0, "0 actions and images are not pinned\n")
    assert [sources.text(name) for name in ("deploy/image/Dockerfile", ".github/workflows/release.yml")] == pinned


LOOSE: Final = {
    WORKFLOW_NAME: [
        "- uses: actions/checkout@v4 # to be pinned later",
        "- {uses: actions/checkout@v4}",
        '- "uses": actions/checkout@v4',
        "- uses : actions/checkout@v4",
        "- uses: &first actions/checkout@v4",
        "- uses: *first",
        "- uses: >-\n    actions/checkout@v4",
        "- uses:\n    actions/checkout@v4",
        "- uses: actions/checkout",
        "- uses: actions/checkout@0123456",
        f"- uses: actions/checkout@{'A' * 40}",
        "- uses: acme/flows/.github/workflows/flow.yml@main",
        "- uses: ./elsewhere",
        "- uses: docker://alpine:3",
        "- uses: docker://${{ matrix.image }}",
        "container: {image: alpine:3}",
        "container: &tools alpine:3",
        "container:\n  alpine:3",
        "sbom: true",
        "driver-opts: |\n  image=moby/buildkit",
    ],
    COMPOSE_NAME: [
        "image: ${IMAGE-alpine:3}",
        "image: ${PLACE}/alpine:3",
        "image: !other alpine:3",
        f"image: alpine:3 # @{DIGEST}",
        f"image: alpine:3@{DIGEST[:-1]}",
    ],
    DOCKERFILE_NAME: [
        "from alpine:3",
        "FROM --platform=linux/amd64 alpine:3",
        "FROM \\\n    alpine:3",
        "FROM ${OTHER}",
        "arg BASE=alpine:3",
        'ARG A=1 BASE="alpine:3"',
        "COPY --from=alpine:3 / /",
        "COPY --from=later / /\nFROM ${BASE} AS later",
        "RUN --mount=type=bind,from=alpine:3,target=/x true",
        "# syntax=docker/dockerfile:1",
    ],
}
"""Ways to name something without a pin, in each kind of file."""
PINNED: Final = {
    WORKFLOW_NAME: [
        f"- uses: actions/checkout@{'a' * 40} # v4 and why",
        "- uses: ./.github/actions/here",
        f"- uses: docker://alpine:3@{DIGEST}",
        f"container:\n  image: alpine:3@{DIGEST}",
        "# uses: actions/checkout@v4",
    ],
    COMPOSE_NAME: ["image: ${IMAGE:?yours}", "image: payrelay:0.1.0"],
    DOCKERFILE_NAME: [
        f"FROM --platform=linux/amd64 alpine:3@{DIGEST} AS tools\nCOPY --from=tools / /",
        f"ARG BASE=alpine:3@{DIGEST}\nFROM ${{BASE}} AS build\nRUN --mount=from=build,target=/x true",
    ],
}


def test_whatever_a_line_is_written_like_it_is_pinned_or_named(sources: Sources) -> None:
    """What the check overlooks is fetched by its tag all the same, and the release goes out."""
    wrong = []
    for kind, is_loose in ((LOOSE, True), (PINNED, False)):
        for name in sorted(kind):
            for other in (WORKFLOW_NAME, COMPOSE_NAME, DOCKERFILE_NAME):
                (sources.root / other).write_text("")
            for text in kind[name]:
                (sources.root / name).write_text(f"{text}\n")
                if any(each.pin is None for _, _, each in found_in(sources.root)) != is_loose:
                    wrong.append(text)
    assert wrong == []


def test_what_can_not_be_read_is_left_as_it_is(sources: Sources, registry: ImageRegistry) -> None:
    """And is named, with its line."""
    path = sources.root / DOCKERFILE_NAME
    path.write_text("FROM docker.io/library/python:3.13\nCOPY --from=alpine:3 / /\n")
    code, said = sources.run("write", registry)

    assert code == 1
    assert f"not looked up: {DOCKERFILE_NAME}:2: can't be read: COPY --from=alpine:3 / /: write it as" in said
    assert path.read_text() == f"FROM docker.io/library/python:3.13@{DIGEST}\nCOPY --from=alpine:3 / /\n"


def test_a_tag_that_moved_is_pinned_anew(sources: Sources, registry: ImageRegistry) -> None:
    """The tag stands beside its pin, so the same command brings all up to date."""
    sources.run("write", registry)
    folder = sources.server / "actions/checkout"
    git(folder, "commit", "-q", "--allow-empty", "-m", "second")
    git(folder, "tag", "-f", "v4")
    code, said = sources.run("write", registry)

    assert (code, said.count("pinned: ")) == (0, 1)
    assert f"checkout@{git(folder, 'rev-parse', 'HEAD')} # v4" in sources.text(".github/workflows/release.yml")


@pytest.mark.parametrize(
    ("told", "status", "why"),
    [
        ("sha256:" + "0" * 64, 200, "tells another digest than that of what it sends"),
        (DIGEST, 404, "its registry answered with HTTP 404"),
        (DIGEST, 500, "its registry answered with HTTP 500"),
    ],
)
def test_what_a_registry_does_not_prove_is_not_written(
    sources: Sources, registry: ImageRegistry, told: str, status: int, why: str
) -> None:
    """A pin that nobody can fetch, or that is of something else, is worse than none."""
    registry.told, registry.status = told, status
    code, said = sources.run("write", registry)

    assert (code, said.count(why)) == (1, 5)
    assert sources.text("deploy/image/Dockerfile") == DOCKERFILE
    assert "not pinned: deploy/image/Dockerfile:1: docker.io/library/python:3.13" in said


def test_what_can_not_be_looked_up_stays_and_is_named(sources: Sources) -> None:
    """Where there is no way out, or no such tag, nothing is made up, and the release is refused by name."""
    git(sources.server / "actions/checkout", "tag", "-d", "v4")
    git(sources.server / "acme/publish", "tag", "release/v1")
    named = [f"--registry={name}=http://127.0.0.1:1" for name in ("docker.io", "registry.example")]
    command = [sys.executable, PINS, "write", "--root", sources.root, "--git", f"file://{sources.server}", *named]
    ran = subprocess.run([str(each) for each in command], check=False, capture_output=True, text=True)

    assert ran.returncode == 1
    for line in (
        "actions/checkout@v4: its repository can't be reached, or has no such tag or branch",
        "acme/publish@release/v1: its repository has a tag and a branch of that name",
        "docker.io/library/postgres:15: its registry can't be reached",
    ):
        assert line in ran.stdout
    assert sources.text("deploy/compose/compose.yaml") == COMPOSE
    assert sources.text(".github/workflows/release.yml").count("# v4") == 1  # the one that could be looked up


READ_ON: Final = r"^(\$\{\w+:-|image=|generator=|docker://)|\}$"
"""What stands around a name."""


def values_of(tree: Any, keys: frozenset[str]) -> Iterator[str]:  # noqa: ANN401 - whatever YAML has
    """Gives the texts that stand at keys, wherever in the tree."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key in keys and isinstance(value, str):
                yield value
            yield from values_of(value, keys)
    elif isinstance(tree, list):
        for each in tree:
            yield from values_of(each, keys)


def text_of(named: Named) -> str:
    """Gives what a file says: for an action its pin in place of the tag, for an image behind it."""
    if named.kind == "action":
        return f"{named.name}@{named.pin or named.tag}"
    return f"{named.name}:{named.tag}" + (f"@{named.pin}" if named.pin else "")


def test_no_file_names_an_action_or_an_image_unseen() -> None:
    """What the command doesn't find is used without a pin, whatever it is written like."""
    named = set()
    for name in git(ROOT, "ls-files").splitlines():
        path = ROOT / name
        if path.suffix in {".yml", ".yaml"} and "/templates/" not in name:
            for tree in yaml.safe_load_all(path.read_text()):
                named |= {re.sub(READ_ON, "", text) for text in values_of(tree, NAMING)}
        if {"dockerfile", "containerfile"} & set(path.name.lower().split(".")) and path.suffix != ".dockerignore":
            text = path.read_text()
            named |= set(
                re.findall(r"^\s*(?:FROM\s+|ARG\s+BASE=|COPY --from=)(\S+)", text, re.MULTILINE | re.IGNORECASE)
            )
            named -= set(re.findall(r" AS (\w+)$", text, re.MULTILINE))
    ours = {
        each for each in named if each.startswith((f"{OWN}:", "./.github/")) or re.fullmatch(r"\$\{\w+(:\?.*)?}?", each)
    }

    assert len(named - ours) > 10
    assert named - ours == {text_of(each) for _, _, each in found_in(ROOT)}
