"""How the databases mean to carry out a statement: what of a growing table they would read whole, or nearly."""

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any, Final

import asyncpg
from tests.store.million.filling import GROWING

from payrelay.store.engine.queries import Query

BULK: Final = 5_000
"""Rows that a statement may take by an index before it counts as reading what grows."""

_SEARCH: Final = re.compile(r"SEARCH (\w+)(?: AS \w+)? USING (?:COVERING )?(?:INDEX (\w+)|PRIMARY KEY) \((.*)\)")
_SCAN: Final = re.compile(r"SCAN (\w+)")
_LIMIT: Final = re.compile(r"(?:LIMIT|OFFSET) \$(\d+)")
_SAMPLES: Final = {"text": "'x'", "json": "'[\"1\"]'", "jsonb": "'[\"1\"]'", "bytea": r"'\x01'", "integer": "5"}
_MOMENT: Final = "1700000050000"
_FEW: Final = "100"
_TOGETHER: Final = 3
"""Statements of a batch."""

_WHOLE: Final = {"Sort", "Aggregate", "Hash"}
"""Nodes that take all their rows before they give the first one."""

Plan = dict[str, Any]


def faults_in_sqlite(connection: sqlite3.Connection, query: Query) -> Iterator[str]:
    """Finds the steps that scan a growing table, and those that take many rows by an index without a limit."""
    sizes = {
        name: [int(each) for each in line.split()]
        for name, line in connection.execute("SELECT idx, stat FROM sqlite_stat1")
    }
    for step in query.sqlite:
        parameters = [None] * step.text.count("?")
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {step.text}", parameters)]
        is_sorted_here = any("TEMP B-TREE FOR ORDER BY" in line for line in plan)
        for line in plan:
            scan, search = _SCAN.match(line), _SEARCH.match(line)
            if scan and scan[1] in GROWING:
                yield line
            elif search and search[1] in GROWING:
                # A range is taken for all that the equal columns before it leave.
                expected = sizes[search[2] or search[1]]
                rows = expected[min(search[3].count("=?"), len(expected) - 1)]
                if rows > BULK and (is_sorted_here or " LIMIT " not in step.text):
                    yield f"{line}: {rows} rows"


async def faults_in_postgresql(connection: asyncpg.Connection, query: Query, samples: Mapping[int, str]) -> list[str]:
    """Finds the nodes that scan a growing table or a big index, and those that take many rows without a limit.

    That is also of the statement that carries out several of the query at once. ``samples`` are parameters by their
    numbers; others are usual ones, by their types.
    """
    texts = [query.postgresql] if query.batch is None else [query.postgresql, query.batch]
    return [fault for text in texts for fault in await _faults(connection, text, samples)]


async def _faults(connection: asyncpg.Connection, text: str, samples: Mapping[int, str]) -> list[str]:
    sizes = dict(await connection.fetch("SELECT relname::text, reltuples FROM pg_class"))
    limits = {int(number) for number in _LIMIT.findall(text)}
    await connection.execute(f"PREPARE explained AS {text}")
    types = await connection.fetchval("SELECT parameter_types::text[] FROM pg_prepared_statements")
    given = [samples.get(number, _FEW if number in limits else _sample(kind)) for number, kind in enumerate(types, 1)]
    arguments = f"({', '.join(given)})" if given else ""
    plan = json.loads(await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE explained{arguments}"))
    await connection.execute("DEALLOCATE explained")
    found = (_fault(node, is_limited=limited, sizes=sizes) for node, limited in nodes(plan[0]["Plan"]))
    return [fault for fault in found if fault]


def _sample(kind: str) -> str:
    if kind.endswith("[]"):
        return f"ARRAY[{', '.join([_sample(kind.removesuffix('[]'))] * _TOGETHER)}]::{kind}"
    return _SAMPLES.get(kind, _MOMENT)


def nodes(plan: Plan, *, is_limited: bool = False) -> Iterator[tuple[Plan, bool]]:
    """Gives a plan's nodes, each with whether it ends as soon as its reader has enough."""
    yield plan, is_limited
    kind = plan["Node Type"]
    for each in plan.get("Plans", []):
        yield from nodes(each, is_limited=kind == "Limit" or (is_limited and kind not in _WHOLE))


def rows_read(plan: Plan) -> int:
    """Counts the rows that an analysed plan took from tables and indexes, whether it used them or not."""
    total = 0
    for node, _ in nodes(plan):
        if "Relation Name" in node or node["Node Type"] == "Bitmap Index Scan":
            passed_over = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
            total += (node["Actual Rows"] + passed_over) * max(1, node["Actual Loops"])
    return total


def _fault(node: Plan, *, is_limited: bool, sizes: Mapping[str, float]) -> str | None:
    kind, table, index = node["Node Type"], node.get("Relation Name", ""), node.get("Index Name", "")
    if not is_growing(table):
        return None
    stops_early = is_limited and "Filter" not in node
    is_whole = kind == "Seq Scan" or (kind.startswith("Index") and "Index Cond" not in node)
    if is_whole and sizes[index or table] > BULK and not stops_early:
        return f"{kind} of {index or table}"
    if node["Plan Rows"] > BULK and not is_limited:
        return f"{kind} of {index or table}: {node['Plan Rows']} rows"
    return None


def is_growing(table: str) -> bool:
    """Tells whether a table grows; ``data_keys`` has partitions."""
    return table in GROWING or table.startswith("data_keys_")
