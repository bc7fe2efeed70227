"""What is locked is compared with advisories that are young enough; with others nothing is called clean."""

import json
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from release.advisories import AGE_MAX, NotChecked, hits, locked, main, read, require_young
from tests.sources import ROOT

NOW: Final = datetime(2026, 11, 27, tzinfo=UTC)
LOCKED: Final = [
    ("jinja2", "3.1.2"),
    ("typing-extensions", "4.9.0"),
    ("certifi", "2024.7.4"),
    ("young", "0b1"),
    ("odd", "not-a-version"),
]


def advisory(name: str = "Jinja2", **members: object) -> dict[str, Any]:
    """Gives an advisory as OSV writes it."""
    affected = {"package": {"ecosystem": "PyPI", "name": name}, **members}
    return {"id": "GHSA-1", "modified": "2026-11-20T08:00:00Z", "affected": [affected]}


def ranges(*events: dict[str, str], kind: str = "ECOSYSTEM") -> dict[str, Any]:
    """Gives a range of versions."""
    return {"ranges": [{"type": kind, "events": list(events)}]}


@pytest.mark.parametrize(
    ("told", "hit"),
    [
        (advisory(versions=["3.1.1", "3.1.2"]), True),
        (advisory(versions=["3.1.3"]), False),
        (advisory(**ranges({"introduced": "0"}, {"fixed": "3.1.3"})), True),
        (advisory(**ranges({"introduced": "0"}, {"fixed": "3.1.2"})), False),
        (advisory(**ranges({"introduced": "0"}, {"last_affected": "3.1.2"})), True),
        (advisory(**ranges({"introduced": "0"}, {"last_affected": "3.1.1"})), False),
        (advisory(**ranges({"introduced": "3.1.2"})), True),
        (advisory(**ranges({"introduced": "0"}, {"fixed": "2.0"}, {"introduced": "3.0"}, {"fixed": "3.2"})), True),
        (advisory(**ranges({"introduced": "0"}, {"fixed": "2.0"}, {"introduced": "3.2"})), False),
        (advisory(**ranges({"fixed": "2.0"}, {"introduced": "3.0"}, {"introduced": "0"})), True),
        (advisory(**ranges({"introduced": "0"}, {"introduced": "3.1.2"}, {"fixed": "3.1.2"})), True),
        (advisory(**ranges({"introduced": "0"}, {"fixed": "3.2.0"}, kind="SEMVER")), True),
        (advisory(**ranges({"introduced": "0"}, {"fixed": "3.1.2"}, kind="SEMVER")), False),
        (advisory("young", **ranges({"introduced": "0"}, {"fixed": "1.0"})), True),
        (advisory(**ranges({"introduced": "0"}, kind="GIT")), True),
        (advisory(**ranges({"introduced": "0"}, kind="GIT"), versions=["3.1.1"]), False),
        (advisory(), True),
        (advisory(versions=["3.1.2.0"]), True),
        (advisory("certifi", versions=["2024.07.04"]), True),
        (advisory("typing_extensions", versions=["4.9.0"]), True),
        (advisory("odd", **ranges({"introduced": "0"}, {"fixed": "1"})), True),
        (advisory(**ranges({"introduced": "what"})), True),
        (advisory("other", **ranges({"introduced": "0"})), False),
        (advisory(versions=["3.1.2"]) | {"withdrawn": "2026-11-21T00:00:00Z"}, False),
        (
            {**advisory(), "affected": [{"package": {"ecosystem": "npm", "name": "jinja2"}, "versions": ["3.1.2"]}]},
            False,
        ),
        ({"id": "X", "modified": "2026-11-20T08:00:00Z"}, False),
    ],
)
def test_a_version_is_hit_where_an_advisory_says_so(told: dict[str, Any], *, hit: bool) -> None:
    """By its list, or by its ranges. What can't be read is looked at by a person."""
    assert bool(list(hits([told], LOCKED))) is hit


def test_a_list_is_as_old_as_its_newest_advisory(tmp_path: Path) -> None:
    """A file that was copied today may be from last year."""
    old = advisory() | {"modified": (NOW - AGE_MAX - timedelta(days=1)).isoformat()}
    ahead = advisory() | {"modified": "2099-01-01T00:00:00Z"}
    assert require_young([old, advisory(), ahead], NOW) == "2026-11-20"
    with pytest.raises(NotChecked, match="over 90 days ago"):
        require_young([old], NOW)
    with pytest.raises(NotChecked, match="over 90 days ago"):  # one date in the future makes no list young
        require_young([old, ahead], NOW)
    with pytest.raises(NotChecked, match="dated ahead"):
        require_young([ahead], NOW)
    with pytest.raises(NotChecked, match="of when"):
        require_young([advisory() | {"modified": "yesterday"}], NOW)
    of_npm = {**advisory(), "affected": [{"package": {"ecosystem": "npm", "name": "jinja2"}, "versions": ["3.1.2"]}]}
    for content in (b"", b"{}", b'{"modified": 7}', b"[", b"[]", json.dumps(of_npm).encode()):
        (tmp_path / "x.json").write_bytes(content)
        with pytest.raises(NotChecked):
            read(str(tmp_path))
    (tmp_path / "x.json").unlink()
    with pytest.raises(NotChecked, match="no advisories"):
        read(str(tmp_path))


def test_where_there_is_no_list_nothing_is_called_clean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not for want of a file, nor for a file that is no list."""
    wrong = tmp_path / "all.zip"
    wrong.write_bytes(b"<html>")
    for arguments in ([], [""], [str(tmp_path / "missing.zip")], [str(wrong)]):
        assert main(arguments) == 0
        assert capsys.readouterr().out.startswith("advisories: not checked: ")


def test_a_lock_that_has_no_version_is_not_checked(tmp_path: Path) -> None:
    """An address may lead to anything."""
    for entry in ("odd @ https://odd.example/odd.whl", "-e .", "odd===1", "git+https://odd.example/odd"):
        (tmp_path / "odd.lock").write_text(f"# made by hand\nodd[all]==1 \\\n    --hash=sha256:0\n{entry}\n")
        with pytest.raises(NotChecked, match=r"odd\.lock has an entry"):
            locked(tmp_path)


def test_a_hit_among_what_is_locked_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line names the advisory, the package, and the locks that have it."""
    versions = locked(ROOT / "requirements")
    name, version = next(each for each in versions if each[0] == "jinja2")
    today = datetime.now(UTC).isoformat()
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("GHSA-1.json", json.dumps(advisory(versions=[version]) | {"modified": today}))
        archive.writestr("GHSA-2.json", json.dumps(advisory(versions=["0.1"]) | {"modified": today}))

    assert main([str(path)]) == 1
    said = capsys.readouterr().out
    assert f"GHSA-1: {name} {version}, in " in said
    assert f"{len(versions)} versions compared with 2 advisories" in said
    assert len(versions) > 50
