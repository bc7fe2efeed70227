"""The manifest of a backup."""

import msgspec


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup is.

    Attributes:
        format: of this manifest.
        payrelay: the version of the program that made it.
        made_at: when the backup began: what was committed before is in it. RFC 3339, UTC.
        newest_entry_at: when the newest journal entry in it was written; None where it has none.
        schema_version: the number of its newest migration.
        file: the name of the copy, in the folder of the manifest.
        bytes, sha256: of the copy.
        key_id: the encryption key that opens it, in hex digits, as ``payrelay seal status`` names it.
    """

    format: int
    payrelay: str
    made_at: str
    newest_entry_at: str | None
    schema_version: int
    file: str
    bytes: int
    sha256: str
    key_id: str
