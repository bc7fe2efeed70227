"""A database that went back in time under a service that others use: what they meet, over sockets."""

import shutil
from pathlib import Path

from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import Program
from tests.scenarios.stories import settings_for

from payrelay.core.access.credential import id_of_key


def test_a_key_that_was_revoked_after_the_backup_opens_nothing_for_one_request(
    tmp_path: Path, gateway: GatewayDouble
) -> None:
    """It was revoked because somebody had stolen it, and the thief asks again and again."""
    program = Program(tmp_path, settings_for(gateway))
    stolen, other = program.new_key("shop"), program.new_key("shop")
    program.start()
    assert program.client(stolen).get("operations").status == 200
    program.stop()
    shutil.copy(tmp_path / "payrelay.db", tmp_path / "backup.db")
    revoked = program.run("keys", "revoke", str(id_of_key(stolen)))
    assert revoked.returncode == 0, revoked.stderr

    for name in ("payrelay.db-wal", "payrelay.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    shutil.copy(tmp_path / "backup.db", tmp_path / "payrelay.db")
    program.start()
    try:
        assert program.client(stolen).get("operations").status == 401
        assert program.client(other).get("operations").status == 200
        assert [line["count"] for line in program.log_lines() if line["event"] == "revocations_reapplied"] == [1]
    finally:
        program.kill()
