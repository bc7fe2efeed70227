"""Says whether other users of the machine may read or change a file that holds settings or a key.

Rules:

1. What counts is what another user can do: a file that anyone may read is safe in a directory that only its owner may
   enter.
2. A file on a read-only mount counts as safe. Containers get their secrets so, for everyone to read in a container that
   nobody else is in: Kubernetes and Docker mount them from memory, read-only, mostly with mode 0644 or 0444.
3. A group may read, because Kubernetes (``fsGroup``), backups and packages give files to a group on purpose; only a
   file's owner may write.
"""

import os
import stat
from pathlib import Path

from payrelay.errors import SettingsError


def require_own(path: Path, name: str, *, is_secret: bool = True) -> None:
    """Raises SettingsError, which names file and mode, where others may change the file, or read it if it is secret.

    ``name`` is the setting that names the file, or what it is. Returns where the file can't be looked at: whoever reads
    it next says why.
    """
    try:
        place = path.resolve()
        if os.statvfs(place).f_flag & os.ST_RDONLY:
            return
        file, directory = place.stat(), place.parent.stat()
        is_reachable = all(parent.stat().st_mode & stat.S_IXOTH for parent in place.parents)
    except OSError:
        return
    mode = stat.S_IMODE(file.st_mode)
    told = f"{name}: {path} has mode {mode:04o}"
    if file.st_uid not in {0, os.geteuid(), directory.st_uid}:
        raise SettingsError(f"{name}: {path} belongs to another user (uid {file.st_uid}); make it your own")
    if mode & stat.S_IWGRP or (is_reachable and mode & stat.S_IWOTH):
        raise SettingsError(f"{told}, so that others may change it; chmod 600 it")
    if is_reachable and directory.st_mode & stat.S_IWOTH and not directory.st_mode & stat.S_ISVTX:
        raise SettingsError(f"{name}: anyone may replace {path} in its directory; chmod o-w {place.parent}")
    if is_secret and is_reachable and mode & stat.S_IROTH:
        raise SettingsError(f"{told}, so that others may read it; chmod 600 it")
