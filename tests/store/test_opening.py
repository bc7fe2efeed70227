from pathlib import Path

import pytest

from payrelay.clock import Clock
from payrelay.errors import SettingsError, StoreUnusable
from payrelay.store import open_database


@pytest.mark.parametrize(
    "url",
    [
        "",
        "payrelay.db",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "postgresql://",
        "postgres://u:SECRET@h/d",
        "mysql://u:SECRET@h/d",
    ],
)
async def test_another_url_is_refused_by_the_name_of_its_setting(url: str) -> None:
    """One line, without what may be a password; a database in memory would forget."""
    with pytest.raises(SettingsError, match="PAYRELAY_DATABASE_URL") as raised:
        await open_database(url, clock=Clock(), owner=True)
    assert "SECRET" not in str(raised.value)


async def test_a_second_owner_is_refused(tmp_path: Path) -> None:
    """One process owns the file; commands work beside it."""
    url = f"sqlite:///{tmp_path}/payrelay.db"
    owner = await open_database(url, clock=Clock(), owner=True)

    with pytest.raises(StoreUnusable, match="another Payrelay process"):
        await open_database(url, clock=Clock(), owner=True)
    command = await open_database(url, clock=Clock(), owner=False)
    await command.ping()
    await command.close()
    await owner.close()


async def test_a_start_that_fails_lets_the_lock_go(tmp_path: Path) -> None:
    """Within one process too: a test or a console may try again."""
    path = tmp_path / "payrelay.db"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(StoreUnusable):
        await open_database(f"sqlite:///{path}", clock=Clock(), owner=True)
    path.unlink()

    database = await open_database(f"sqlite:///{path}", clock=Clock(), owner=True)
    await database.close()
