"""What the backups bring."""

from typing import Final

from payrelay.parts import Part

PART: Final = Part(
    commands={
        "backup": "payrelay.backups.commands.backup",
        "restore": "payrelay.backups.commands.restore",
        "db copy": "payrelay.backups.commands.copy_database",
    }
)
