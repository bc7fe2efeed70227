import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from payrelay.errors import SettingsError
from payrelay.settings import read_settings
from payrelay.settings.file_modes import require_own

SECRET = 'gateways.gateway.app_id = "a"\ngateways.gateway.app_secret = "s"\n'


@pytest.fixture
def folder() -> Iterator[Path]:
    """Gives a folder that every user of the machine may enter."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


def file_in(folder: Path, mode: int, text: str = "secret") -> Path:
    """Makes a file with a mode."""
    path = folder / "payrelay.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640, 0o440])
def test_an_own_file_is_taken(folder: Path, mode: int) -> None:
    """Its owner reads it, or a group that was given it on purpose, such as fsGroup."""
    require_own(file_in(folder, mode), "X")


@pytest.mark.parametrize(
    ("mode", "why"),
    [(0o644, "read"), (0o604, "read"), (0o660, "change"), (0o620, "change"), (0o602, "change"), (0o666, "change")],
)
def test_a_file_of_others_is_named_with_its_mode(folder: Path, mode: int, why: str) -> None:
    """Whoever may read the file has the secret; whoever may change it has the service."""
    path = file_in(folder, mode)
    with pytest.raises(
        SettingsError, match=rf"X: {path} has mode {mode:04o}, so that others may {why} it; chmod 600 it"
    ):
        require_own(path, "X")


def test_nobody_reads_a_file_in_a_closed_folder(folder: Path) -> None:
    """Where others may not enter the folder, the mode of its files opens nothing."""
    folder.chmod(0o700)
    require_own(file_in(folder, 0o644), "X")


def test_a_folder_that_anyone_may_write_is_refused(folder: Path) -> None:
    """Others could put another file in the place of this one."""
    path = file_in(folder, 0o600)
    folder.chmod(0o777)
    with pytest.raises(SettingsError, match="anyone may replace"):
        require_own(path, "X")


def test_a_missing_file_is_somebody_elses_error(folder: Path) -> None:
    """Whoever reads it says what is wrong."""
    require_own(folder / "missing", "X")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user_is_refused(folder: Path) -> None:
    """In a folder that all share, such as /tmp, anybody may have put it there."""
    path = file_in(folder, 0o600)
    os.chown(path, 12_345, -1)
    with pytest.raises(SettingsError, match="belongs to another user"):
        require_own(path, "X")


def test_a_read_only_mount_is_a_containers_own() -> None:
    """Kubernetes mounts secrets read-only, and for everyone to read: they must not lock the service out."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    read_only = [Path(fields[1]) for fields in mounts if "ro" in fields[3].split(",") and Path(fields[1]).is_dir()]
    files = [path for mount in read_only for path in list(mount.glob("*"))[:50] if path.is_file()]
    if not files:
        pytest.skip("nothing is mounted read-only here")
    for path in files:
        require_own(path, "X")


@pytest.mark.parametrize(
    "text", [SECRET, 'database_url = "postgresql://payrelay:secret@db/payrelay"\n', 'alert_url = "https://a/?key=1"\n']
)
def test_settings_with_a_secret_are_own(folder: Path, text: str) -> None:
    """The configuration file is refused where others may read a secret in it."""
    file_in(folder, 0o644, text)
    with pytest.raises(SettingsError, match=r"PAYRELAY_CONFIG: .*payrelay\.toml has mode 0644"):
        read_settings({}, folder)


def test_settings_without_a_secret_may_be_read(folder: Path) -> None:
    """Names of files and hosts are no secret; but nobody else may change them."""
    file_in(folder, 0o644, 'repeat_window = "1h"\ndatabase_url = "postgresql://payrelay@db/payrelay"\n')
    assert read_settings({}, folder).repeat_window == 3600
    file_in(folder, 0o666, 'repeat_window = "1h"\n')
    with pytest.raises(SettingsError, match="0666"):
        read_settings({}, folder)


def test_a_secret_in_a_file_is_own(folder: Path) -> None:
    """A setting that names a file is refused where others may read that file."""
    path = file_in(folder, 0o644)
    with pytest.raises(SettingsError, match=r"PAYRELAY_ENCRYPTION_KEY_FILE: .* has mode 0644"):
        read_settings({"PAYRELAY_ENCRYPTION_KEY_FILE": str(path)}, folder / "elsewhere")
