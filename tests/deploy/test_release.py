"""A release publishes a version, and needs a page of the benchmark that was measured with that very version."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
import yaml
from tests.sources import ROOT

CHECK: Final = "bench/page_of_version.py"
SECTION: Final = "<!-- {0}: begin (written by bench/{0}.py) -->\n{1}\n<!-- {0}: end -->\n"


class Repository:
    """A repository with sources, the check and a page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "src").mkdir()
        (folder / "docs").mkdir()
        (folder / "bench").mkdir()
        shutil.copy(ROOT / CHECK, folder / CHECK)
        self.git("init", "-q")
        self.commit_sources("first")

    def git(self, *arguments: str) -> str:
        """Runs git as nobody in particular."""
        who = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.com", "-c", "commit.gpgsign=false")
        ran = subprocess.run(["git", *who, *arguments], cwd=self.folder, check=True, capture_output=True, text=True)
        return ran.stdout.strip()

    def commit_sources(self, text: str) -> str:
        """Changes the sources; gives the commit."""
        (self.folder / "src/module.py").write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", text)
        return self.git("rev-parse", "--short=12", "HEAD")

    def page(self, **sections: str) -> None:
        """Commits a page with these sections, which changes no sources."""
        text = "".join(SECTION.format(*section) for section in sections.items())
        (self.folder / "docs/benchmark.md").write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "page")

    def said(self, version: str = "1.2.0") -> tuple[int, str]:
        """Runs the check; gives its exit code and what it printed."""
        command = [sys.executable, str(self.folder / CHECK), version]
        ran = subprocess.run(command, cwd=self.folder, check=False, capture_output=True, text=True)
        return ran.returncode, ran.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with one commit."""
    return Repository(tmp_path)


def test_a_page_of_the_very_sources_is_enough(repository: Repository) -> None:
    """The page itself is committed after the measurement, and the sources are still those that were measured."""
    commit = repository.commit_sources("released")
    repository.page(
        results=f"Measured at commit {commit} of version 1.2.0:", events=f"at commit {commit} of version 1.2.0,"
    )

    assert repository.said() == (0, "every figure of benchmark.md is of version 1.2.0")


@pytest.mark.parametrize(
    ("measured", "reason"),
    [
        ("at commit {commit} of version 1.1.0.", "measured with version 1.1.0, and 1.2.0 is released"),
        ("at commit {commit}:", "measured with version unknown, and 1.2.0 is released"),
        ("at commit {commit} of version 1.2.0, changed,", "measured with sources that differ from the commit {commit}"),
        ("at commit 0123456789ab of version 1.2.0,", "measured at commit 0123456789ab, which is not known here"),
        ("Not measured on a quiet machine yet.", "not measured"),
    ],
)
def test_figures_of_something_else_stop_a_release(repository: Repository, measured: str, reason: str) -> None:
    """A page that tells of an earlier version is believed as if it told of the one that is installed."""
    commit = repository.commit_sources("released")
    own = f"at commit {commit} of version 1.2.0:"
    repository.page(results=own, events=measured.format(commit=commit))

    assert repository.said() == (1, f"events: {reason.format(commit=commit)}")


def test_sources_that_changed_after_the_measurement_stop_a_release(repository: Repository) -> None:
    """The version's number is the same from the first commit after a release to the last one before the next."""
    commit = repository.commit_sources("measured")
    repository.commit_sources("slower")
    repository.page(results=f"at commit {commit} of version 1.2.0:")

    assert repository.said() == (1, f"results: measured at commit {commit}, and the sources have changed since")


def test_a_page_without_results_stops_a_release(repository: Repository) -> None:
    """Else a page whose marks were lost would pass for one that is right."""
    repository.page()

    assert repository.said() == (1, "the page has no results")


def test_nothing_is_published_without_the_check() -> None:
    """The check is a step of the job that all others wait for, and sees the commits that the page names."""
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    steps = jobs["test"]["steps"]

    assert f'python3 {CHECK} "${{GITHUB_REF_NAME#v}}"' in [step.get("run") for step in steps]
    assert steps[0]["with"]["fetch-depth"] == 0
    assert {name: job["needs"] for name, job in jobs.items() if name != "test"} == {
        "wheel": "test",
        "publish": "wheel",
        "image": "test",
    }


def test_nothing_is_published_that_is_not_pinned() -> None:
    """What a tag leads to tomorrow was seen by nobody today; the job is the one that all others wait for."""
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]

    assert "python3 release/pins.py check" in [step.get("run") for step in jobs["test"]["steps"]]
    waited_for = {name: name for name in jobs}
    for name, job in jobs.items():  # each waits for one that stands before it
        waited_for[name] = waited_for[job["needs"]] if "needs" in job else name
    assert set(waited_for.values()) == {"test"}
    # Docker's actions fetch a builder, and a scanner, by tags of their own where none is named.
    steps = [(step["uses"].partition("@")[0], step.get("with", {})) for step in jobs["image"]["steps"]]
    named = [given for use, given in steps if use in {"docker/setup-buildx-action", "docker/build-push-action"}]
    assert named[0]["driver-opts"].startswith("image=")
    assert named[1]["sbom"].startswith("generator=")


def test_each_section_of_the_page_says_of_which_version_it_is() -> None:
    """A reader learns what the figures are of, also between two releases."""
    text = (ROOT / "docs/benchmark.md").read_text()
    assert len(re.findall(r"at commit [0-9a-f]{12} of version \S+", text)) == text.count("at commit ")
