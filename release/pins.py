"""Pins what a release is built with and recommends: each action by its commit, each container image by its digest.

``python release/pins.py write`` looks each tag up, actions by ``git ls-remote`` and images at their registries, and
writes what it finds. What can't be looked up stays as it is, and is named. ``python release/pins.py check`` names what
isn't pinned, and ends with 1 where there is any: nothing is published then. Neither needs more than Python and git. A
line that names something in a way that they don't read counts as not pinned.

``--git PREFIX`` and ``--registry NAME=ADDRESS`` look up elsewhere, such as at a mirror.
"""

import argparse
import hashlib
import http.client
import json
import re
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
FILES: Final = (
    *(".github/workflows/*.yml", ".github/workflows/*.yaml", ".github/actions/**/*.yml", ".github/actions/**/*.yaml"),
    *("deploy/image/Dockerfile", "deploy/compose/*.yaml", "examples/**/*.yml", "examples/**/*.yaml"),
)
"""The files that name actions and images; a test looks for others."""
OWN: Final = "payrelay"
"""The image that is built here. Its digest isn't known before, and is what the release publishes."""
DOCKER_HUB: Final = "docker.io"
_HOST_OF: Final = {DOCKER_HUB: "https://registry-1.docker.io"}
_KINDS: Final = (
    "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"
)
"""The kinds of manifests, those for all machines first."""
_MANIFEST_BYTES_MAX: Final = 4_194_304
"""As much as registries take."""
_WAIT_S: Final = 30

_action: Final = re.compile(
    r"^(?P<head>\s*(?:-\s*)?uses:\s*)(?P<quote>[\"']?)(?P<name>[\w.-][\w./-]*)@(?P<ref>[^\s#\"']+)(?P=quote)"
    r"(?:\s+#\s*(?P<tag>\S+)?.*)?$"
)
_image: Final = re.compile(
    r"^(?P<head>\s*(?:-\s*)?(?:image:\s*|container:\s*|driver-opts:\s*image=|sbom:\s*generator=|ARG BASE="
    r"|FROM\s+(?:--platform=\S+\s+)?|uses:\s*[\"']?docker://)[\"']?(?:\$\{\w+:-)?)"
    r"(?P<name>[a-z0-9][\w.:/@-]*)(?P<tail>.*)$"
)
_key: Final = re.compile(
    r"(?:^|[\s{,-])[\"']?(?P<key>uses|image|container|driver-opts|sbom)[\"']?\s*:(?:\s+(?P<value>[^\s#].*?))?(?:\s+#.*)?\s*$"
).search
_chosen_elsewhere: Final = re.compile(
    rf"([\"']?)(?:\./\.github/[\w./-]+|\$\{{\w+:?\?[^}}]*\}}|{OWN}(?::[\w.-]+)?|\$\{{\w+:-{OWN}(?::[\w.-]+)?\}})\1"
).fullmatch
"""What lies here and is searched too, what whoever runs it must name, and what is built here."""
_begins_mapping: Final = re.compile(r"\s*[\w-]+:(?:\s|$)").match
_base: Final = re.compile(r"\s*(?:from\b|#\s*syntax\s*=|arg\b.*\bbase\b)", re.IGNORECASE).match
_base_of_build: Final = re.compile(r"FROM \$\{BASE\}(?: AS \w+)?").fullmatch
_copied_from: Final = re.compile(r"\bfrom=([^\s,]+)", re.IGNORECASE).findall
_stage: Final = re.compile(r"^FROM .* AS (\w+)$", re.MULTILINE).findall
_commit: Final = re.compile(r"[0-9a-f]{40}").fullmatch
_digest: Final = re.compile(r"sha256:[0-9a-f]{64}").fullmatch


class NotFound(Exception):
    """A tag can't be looked up here; the text says why."""


class Named(NamedTuple):
    """A line that names an action or an image.

    Attributes:
        head, tail: what stands before and behind the name.
        kind: ``action`` or ``image``; ``line`` where the name can't be read, and is the whole line.
        name, tag: what is looked up; a tag that nothing says is empty, beside a pin.
        pin: the commit or the digest; None where there is none.
    """

    head: str
    kind: str
    name: str
    tag: str
    pin: str | None
    tail: str

    def __str__(self) -> str:
        if self.kind == "line":
            return f"can't be read: {self.name}"
        return f"{self.name}@{self.tag}" if self.kind == "action" else f"{self.name}:{self.tag}"

    def pinned(self, pin: str) -> str:
        """Gives the line with a pin; the tag stays readable beside it."""
        if self.kind == "action":
            return f"{self.head}{self.name}@{pin} # {self.tag}"
        return f"{self.head}{self.name}:{self.tag}@{pin}{self.tail}"


def named_in(line: str) -> Named | None:
    """Reads what a line names; None for one that names nothing, or what is built or lies here."""
    action = _action.match(line)
    if action is not None:
        head, name, ref, tag = action.group("head", "name", "ref", "tag")
        if name.startswith("./"):
            return None
        is_pinned = _commit(ref) is not None
        return Named(head, "action", name, (tag or "") if is_pinned else ref, ref if is_pinned else None, "")
    image = _image.match(line)
    if image is None:
        return None
    head, text, tail = image.group("head", "name", "tail")
    whole, _, digest = text.partition("@")
    repository, _, last = whole.rpartition("/")
    name, _, tag = last.partition(":")
    name = f"{repository}/{name}" if repository else name
    if name == OWN:
        return None
    pin = digest if _digest(digest) else None
    return Named(head, "image", name, tag if tag or pin else "latest", pin, tail)


def found_in(root: Path) -> Iterator[tuple[Path, int, Named]]:
    """Finds all that is named, with its file and the number of its line, from 1."""
    for path in sorted({path for pattern in FILES for path in root.glob(pattern)}):
        is_unread = _is_unread_yaml if path.suffix in {".yml", ".yaml"} else _is_unread_dockerfile
        lines = path.read_text().splitlines()
        for index, line in enumerate(lines):
            named = named_in(line)
            if named is None and is_unread(lines, index):
                named = Named("", "line", line.strip(), "", None, "")
            if named is not None:
                yield path, index + 1, named


def _is_unread_yaml(lines: list[str], index: int) -> bool:
    """True where a line that names nothing readable may name something, such as in braces or by an alias."""
    line = lines[index]
    found = None if line.lstrip().startswith("#") else _key(line)
    if found is None:
        return False
    if found["value"] is None and found["key"] not in {"uses", "sbom"}:
        return _begins_mapping("".join(lines[index + 1 : index + 2])) is None
    return _chosen_elsewhere(found["value"] or "") is None


def _is_unread_dockerfile(lines: list[str], index: int) -> bool:
    """True where a line that names nothing readable may take something from an image that isn't a stage before it."""
    line = lines[index]
    stages = set(_stage("\n".join(lines[:index])))
    return not stages.issuperset(_copied_from(line)) or (_base(line) is not None and _base_of_build(line) is None)


def commit_of(name: str, tag: str, prefix: str) -> str:
    """Looks up the commit of an action's tag or branch. Raises NotFound."""
    address = f"{prefix}/{'/'.join(name.split('/')[:2])}"
    tags, branch = (f"refs/tags/{tag}^{{}}", f"refs/tags/{tag}"), f"refs/heads/{tag}"
    try:
        asked = subprocess.run(
            ["git", "ls-remote", "--exit-code", "--", address, *tags, branch],
            check=False,
            capture_output=True,
            text=True,
            timeout=_WAIT_S,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_TERMINAL_PROMPT": "0"},
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise NotFound(f"git can't be asked ({type(error).__name__})") from None
    refs = {ref: commit for commit, _, ref in (line.partition("\t") for line in asked.stdout.splitlines())}
    if asked.returncode or not refs:
        raise NotFound("its repository can't be reached, or has no such tag or branch")
    if branch in refs and tags[1] in refs:
        raise NotFound("its repository has a tag and a branch of that name")
    commit = next(refs[ref] for ref in (*tags, branch) if ref in refs)  # of an annotated tag the commit, not the tag
    if _commit(commit) is None:
        raise NotFound("its repository names no commit for it")
    return commit


def digest_of(name: str, tag: str, addresses: Mapping[str, str]) -> str:
    """Looks up the digest of an image's tag, and makes sure that it is the digest of what the registry has.

    Raises NotFound.
    """
    host, _, path = name.partition("/")
    if not path or not ("." in host or ":" in host or host == "localhost"):
        host, path = DOCKER_HUB, name if path else f"library/{name}"
    base = addresses.get(host) or _HOST_OF.get(host) or f"https://{host}"
    address = f"{base}/v2/{path}/manifests/{urllib.parse.quote(tag)}"
    headers = {"Accept": _KINDS}
    try:
        try:
            body, told = _read(address, headers)
        except urllib.error.HTTPError as error:
            if error.code != http.HTTPStatus.UNAUTHORIZED:
                raise
            token = _token_for(error.headers.get("WWW-Authenticate", ""), base)
            body, told = _read(address, headers | {"Authorization": f"Bearer {token}"})
    except urllib.error.HTTPError as error:
        raise NotFound(f"its registry answered with HTTP {error.code}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise NotFound(f"its registry can't be reached ({type(error).__name__})") from None
    digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
    if told not in {None, digest}:
        raise NotFound("its registry tells another digest than that of what it sends")
    return digest


def _read(address: str, headers: dict[str, str]) -> tuple[bytes, str | None]:
    request = urllib.request.Request(address, headers=headers)  # noqa: S310 - http for a registry of the tests alone
    with urllib.request.urlopen(request, timeout=_WAIT_S) as answer:  # noqa: S310
        body = answer.read(_MANIFEST_BYTES_MAX + 1)
        if len(body) > _MANIFEST_BYTES_MAX:
            raise ValueError("too long")
        return body, answer.headers.get("Docker-Content-Digest")


def _token_for(challenge: str, base: str) -> str:
    """Gets a token that anybody gets, as the registry's challenge says."""
    told = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
    realm = told.pop("realm", "")
    if urllib.parse.urlsplit(realm).scheme not in {"https", urllib.parse.urlsplit(base).scheme}:
        raise ValueError("no realm")
    asked = urllib.parse.urlencode({name: told[name] for name in ("service", "scope") if name in told})
    body, _ = _read(f"{realm}?{asked}", {})
    answer = json.loads(body)
    return str(answer.get("token") or answer["access_token"])


def _pin_of(named: Named, prefix: str, addresses: Mapping[str, str]) -> str:
    if named.kind == "line":
        raise NotFound("write it as others are written")
    if named.kind == "action":
        return commit_of(named.name, named.tag, prefix)
    return digest_of(named.name, named.tag, addresses)


def check(root: Path) -> int:
    """Names what isn't pinned; returns 1 where there is any."""
    loose = [f"{path.relative_to(root)}:{number}: {named}" for path, number, named in found_in(root) if not named.pin]
    print("\n".join([*(f"not pinned: {each}" for each in loose), f"{len(loose)} actions and images are not pinned"]))
    return 1 if loose else 0


def write(root: Path, prefix: str, addresses: Mapping[str, str]) -> int:
    """Looks everything up, and writes what is found; returns 1 where something isn't pinned then."""
    looked_up: dict[Named, str | NotFound] = {}
    texts: dict[Path, list[str]] = {}
    for path, number, named in found_in(root):
        if named.pin and not named.tag:
            continue  # nothing says what it is to be
        key = named._replace(head="", tail="", pin=None)
        if key not in looked_up:
            try:
                looked_up[key] = _pin_of(named, prefix, addresses)
            except NotFound as error:
                looked_up[key] = error
        pin = looked_up[key]
        if isinstance(pin, NotFound):
            print(f"not looked up: {path.relative_to(root)}:{number}: {named}: {pin}")
        elif pin != named.pin:
            lines = texts.setdefault(path, path.read_text().splitlines())
            lines[number - 1] = named.pinned(pin)
            print(f"pinned: {path.relative_to(root)}:{number}: {named} is {pin}")
    for path, lines in texts.items():
        path.write_text("\n".join(lines) + "\n")
    return check(root)


def main(arguments: list[str]) -> int:
    """Runs one of the two commands."""
    parser = argparse.ArgumentParser(description="Pins actions by commit, and images by digest.")
    parser.add_argument("command", choices=["check", "write"])
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--git", default="https://github.com", metavar="PREFIX")
    parser.add_argument("--registry", action="append", default=[], metavar="NAME=ADDRESS")
    given = parser.parse_args(arguments)
    if given.command == "check":
        return check(given.root)
    return write(given.root, given.git, dict(each.split("=", 1) for each in given.registry))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
