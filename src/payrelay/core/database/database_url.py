"""The address of the database, as the setting PAYRELAY_DATABASE_URL has it."""

from typing import Final

from payrelay.errors import SettingsError

_SQLITE: Final = "sqlite:///"
_POSTGRESQL: Final = "postgresql://"


def embedded_file(url: str) -> str | None:
    """Gives the file of an embedded database, None for a database server; raises SettingsError for any other URL."""
    if url.startswith(_POSTGRESQL) and url != _POSTGRESQL:
        return None
    name = url.removeprefix(_SQLITE)
    if name == url or not name or name.startswith(":memory:"):
        raise SettingsError("PAYRELAY_DATABASE_URL must be sqlite:///path or postgresql://user@host/database")
    return name
