"""What a migration on PostgreSQL may do to a table that is in use, read from its text.

A statement that rewrites or reads a whole table under a lock stops every charge meanwhile. One file changes one table,
so that the waits for locks don't add up. What older programs use is not taken away beneath them.
"""

import re
from collections.abc import Iterator
from typing import Final

from payrelay.store.engine.migrations import Migration

_NAME: Final = r"(?:only )?(?:if exists )?(?P<table>\w+)"
_SINCE: Final = re.compile(r".*_since_(\d{4})")
_CREATED: Final = re.compile(r"create table (?:if not exists )?(\w+)")
_INDEX: Final = re.compile(r"create (?:unique )?index (?P<online>concurrently )?(?P<name>\w+) on (?P<table>\w+)")
_ALTER: Final = re.compile(rf"alter table {_NAME} (?P<actions>.*)")
_PLAIN_DEFAULT: Final = re.compile(r"default (?:'[^']*'|-?\d+|null|true|false)(?: |$)")
_REMOVES: Final = re.compile(r"\b(?:drop (?:table|column|constraint|view)|rename)\b")
_ONLINE_FORMS: Final = (
    re.compile(r"drop index concurrently if exists \w+"),
    re.compile(r"create (?:unique )?index concurrently \w+ on .*"),
    re.compile(r"alter table \w+ validate constraint \w+"),
)
_WHOLE_TABLE: Final = {
    "alter column type": re.compile(r"alter (?:column )?\w+ (?:set data )?type\b"),
    "set not null": re.compile(r"\bset not null\b"),
    "a computed column": re.compile(r"\bgenerated\b|\b(?:big|small)?serial\b"),
    "set tablespace or (un)logged": re.compile(r"\bset (?:tablespace|logged|unlogged|access method)\b"),
    "a key or a unique constraint": re.compile(r"\b(?:unique|primary key)\b(?! using index)"),
}
_OF_ITSELF: Final = re.compile(r"^(?:cluster|vacuum|reindex|lock|truncate|refresh)\b")


def faults(migration: Migration) -> Iterator[str]:
    """Finds what would stop charges, or older programs, while a migration runs; each in a line."""
    if _SINCE.fullmatch(migration.name) is None:
        yield "its name doesn't say since which version programs can work with it: ..._since_0001.sql"
    statements = [" ".join(each.split()).lower() for each in migration.statements]
    if migration.is_online:
        yield from _online_faults(statements)
        return
    made = {name for each in statements for name in _CREATED.findall(each)}
    touched = set()
    for each in statements:
        index, alter = _INDEX.match(each), _ALTER.match(each)
        if "concurrently" in each:
            yield f"runs in a transaction, and can't: {each}"
        elif index and index["table"] not in made:
            yield f"an index on a table in use is made concurrently, in an online file: {each}"
        elif alter and alter["table"] not in made:
            touched.add(alter["table"])
            yield from _alter_faults(alter["actions"])
        elif _OF_ITSELF.match(each) or each.startswith(("update ", "delete ")):
            yield f"reads or locks a whole table; an upgrade step does it page by page: {each}"
        yield from _removal_faults(migration, each)
    if len(touched) > 1:
        yield f"changes several tables, whose locks add up; make a file of each: {', '.join(sorted(touched))}"


def _online_faults(statements: list[str]) -> Iterator[str]:
    for before, each in zip(["", *statements], statements, strict=False):
        if not any(form.fullmatch(each) for form in _ONLINE_FORMS):
            yield f"has no place in an online file: {each}"
        index = _INDEX.match(each)
        if index and before != f"drop index concurrently if exists {index['name']}":
            yield f"a stopped one leaves an invalid index; drop it in the statement before: {each}"


def _alter_faults(actions: str) -> Iterator[str]:
    for what, form in _WHOLE_TABLE.items():
        if form.search(actions):
            yield f"{what} rewrites or reads the whole table: {actions}"
    if "add constraint" in actions and "using index" not in actions and not actions.endswith("not valid"):
        yield f"a constraint is added as NOT VALID, and validated in an online file: {actions}"
    if re.search(r"add (?:column )?(?!constraint)\w+ .*\b(?:references|check)\b", actions):
        yield f"a constraint of a column reads the whole table; add it by itself: {actions}"
    if " default " in actions and not _PLAIN_DEFAULT.search(actions):
        yield f"a default that isn't a constant rewrites the table: {actions}"
    if "not null" in actions and "add column" in actions and " default " not in actions:
        yield f"programs of the version before store rows without it: {actions}"


def _removal_faults(migration: Migration, statement: str) -> Iterator[str]:
    since = _SINCE.fullmatch(migration.name)
    if _REMOVES.search(statement) and since and int(since[1]) < migration.number - 1:
        yield f"programs since version {since[1]} may still use what it removes: {statement}"
