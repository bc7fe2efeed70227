"""The files of an installation fit the schemas and checks of the programs that read them."""

import re
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from tests.deploy.programs import DEPLOY, program, said_by

from payrelay.settings import Settings, variable_name

CHECK: Final = Path(sys.executable).parent / "check-jsonschema"
CHART: Final = DEPLOY / "helm/payrelay"
UNITS: Final = DEPLOY / "systemd"
SERVICES: Final = sorted(path.name for path in UNITS.glob("*.service"))
EXPOSURE_MAX: Final = 20
"""In tenths, of 100: systemd calls up to 2.0 well protected for a service with a network."""


@pytest.mark.parametrize(
    ("schema", "file"),
    [
        ("vendor.compose-spec", DEPLOY / "compose/compose.yaml"),
        ("vendor.github-workflows", DEPLOY.parent / ".github/workflows/release.yml"),
        ("vendor.compose-spec", DEPLOY.parent / "examples/simulator/compose.yaml"),
        ("vendor.github-workflows", DEPLOY.parent / "examples/simulator/github-actions.yml"),
    ],
    ids=["compose", "release", "simulator", "actions"],
)
def test_a_file_fits_its_schema(schema: str, file: Path) -> None:
    """A misspelt member is ignored or refused only where the file is used: on the day of the installation."""
    said_by(CHECK, "--builtin-schema", schema, file)


def test_the_values_of_the_chart_fit_their_schema() -> None:
    """Helm refuses values that the schema forbids, its own defaults included."""
    said_by(CHECK, "--schemafile", CHART / "values.schema.json", CHART / "values.yaml")


def test_the_chart_renders_what_a_pod_needs() -> None:
    """The settings of the pod are those of the docs: any user, nothing writable, no variables of the cluster."""
    text = said_by(program("helm"), "template", "payrelay", str(CHART), "--set", "ingress.enabled=true")
    found = {each["kind"]: each for each in yaml.safe_load_all(text)}
    pod = found["Deployment"]["spec"]["template"]["spec"]
    container = pod["containers"][0]

    assert set(found) == {"Deployment", "Job", "Service", "PodDisruptionBudget", "NetworkPolicy", "Ingress"}
    assert pod["enableServiceLinks"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_the_chart_renders_without_a_warning() -> None:
    """What helm warns of is wrong in some version of it."""
    assert "0 chart(s) failed" in said_by(program("helm"), "lint", "--strict", str(CHART))


def settings_named(value: object) -> set[str]:
    """Gives the names of all settings without an account that a tree of values sets."""
    return set(re.findall(r"\bPAYRELAY_[A-Z_]+(?<!_FILE)(?=[:=\n ]|_FILE\b)", str(value)))


@pytest.mark.parametrize(
    "file",
    [
        DEPLOY / "image/Dockerfile",
        CHART / "templates/_helpers.tpl",
        UNITS / "payrelay@.service",
        UNITS / "payrelay.env",
    ],
    ids=lambda file: file.name,
)
def test_every_setting_that_is_set_is_one(file: Path) -> None:
    """The program refuses an unknown name at its start, so a misspelt one here starts nowhere."""
    known = {variable_name((field,)) for field in Settings.model_fields}
    plain = {name for name in settings_named(file.read_text()) if "__" not in name}

    assert plain - known == set()
    assert plain != set()


def mounted(compose: dict[str, Any]) -> list[str]:
    """Gives the files and folders of the sources that the services mount."""
    volumes = (volume for service in compose["services"].values() for volume in service.get("volumes", ()))
    return [volume.split(":")[0] for volume in volumes if volume.startswith(".")]


def test_what_compose_mounts_is_there() -> None:
    """A folder that is missing is made empty by the engine, and Prometheus then starts without a rule."""
    compose = yaml.safe_load((DEPLOY / "compose/compose.yaml").read_text())

    assert [path for path in mounted(compose) if not (DEPLOY / "compose" / path).exists()] == []


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """The units as they are installed, but for the program, which systemd looks for."""
    for unit in UNITS.glob("payrelay*.[st]*"):
        text = re.sub(r"/opt/payrelay/bin/payrelay|/usr/local/sbin/payrelay-\w+", "/bin/true", unit.read_text())
        (tmp_path / unit.name).write_text(text)
    return tmp_path


def test_systemd_accepts_the_units(units: Path) -> None:
    """A line that systemd doesn't know is ignored with a warning, and then protects nothing."""
    names = sorted({path.name.replace("@.", "@1.") for path in units.iterdir()})

    assert len(names) >= 7
    assert said_by(program("systemd-analyze"), "verify", "--man=no", *(units / name for name in names)) == ""


@pytest.mark.parametrize("name", SERVICES)
def test_a_unit_is_shut_off_from_the_machine(units: Path, name: str) -> None:
    """Whoever gets into the process is to find nothing there: systemd itself counts what is still open."""
    plain = units / name.replace("@", "")
    plain.write_text((units / name).read_text())

    said_by(
        program("systemd-analyze"), "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager", plain
    )


@pytest.mark.parametrize("name", SERVICES)
def test_a_unit_brings_every_secret_that_the_settings_need(name: str) -> None:
    """Each command reads all settings: one secret that is missing ended the upgrade of a new installation."""
    text = (UNITS / name).read_text()
    named = set(re.findall(r"^Environment=PAYRELAY_\w+_FILE=%d/([a-z-]+)$", text, re.MULTILINE))

    assert named == {"database-url", "encryption-key", "app-secret", "merchant-secret"}
    assert set(re.findall(r"^LoadCredential=([a-z-]+):", text, re.MULTILINE)) == named


@pytest.mark.parametrize(
    "file",
    [
        *(UNITS / name for name in SERVICES),
        UNITS / "payrelay-admin",
        DEPLOY / "compose/compose.yaml",
        CHART / "templates/_helpers.tpl",
    ],
    ids=lambda file: file.name,
)
def test_every_package_keeps_marks(file: Path) -> None:
    """Without marks, a start after a failover doesn't notice that commits are lost, and PostgreSQL has no default."""
    assert re.search(r"PAYRELAY_MARK_PATH(=|: |\n +value: )(/var/lib|%S)/payrelay/marks\b", file.read_text())


def test_prometheus_accepts_the_samples_for_one_machine() -> None:
    """Prometheus that refuses its file at the start leaves an installation unwatched."""
    said_by(program("promtool"), "check", "config", "--syntax-only", DEPLOY / "prometheus/machine.yml")
    routes = yaml.safe_load((DEPLOY / "prometheus/alertmanager.yml").read_text())
    named = {routes["route"]["receiver"], *(route["receiver"] for route in routes["route"]["routes"])}

    assert named == {receiver["name"] for receiver in routes["receivers"]}
