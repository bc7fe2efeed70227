"""The page that says what proves each field that a customer can write lists every module that decides by one."""

import ast
import re
from collections import defaultdict
from datetime import date
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.gateways.payhere.wire.test_checkout_forms import MERCHANT, PLAN, RETURNS, TODAY, asked
from tests.sources import OURS, Source

from payrelay.core.calls import Item
from payrelay.core.checkouts.hosted_payment import CheckoutKind, PostalAddress
from payrelay.core.notifications.notification import NotificationContent
from payrelay.gateways.payhere.wire.checkout_forms import build_form

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = (ROOT / "docs" / "resolution.md").read_text()
SECTION: Final = PAGE.partition("## What proves a field that a customer can write")[2].partition("\n## ")[0]
MEMBERS: Final = NotificationContent.__struct_fields__
HOLDERS: Final = frozenset({"content", "notification"})
"""The names of the values that have these members: the content of a notification, and its stored row."""
ONLY_KEEP_OR_SHOW: Final = {
    "payrelay/console/rules/timeline.py": "shows them to support",
    "payrelay/console/flows/cases/hits.py": "shows them to support",
    "payrelay/flows/notifications/ingest.py": "stores them",
    "payrelay/flows/notifications/work_inbox.py": "finds the search of the order, and logs",
    "payrelay/flows/operators/acts/cases.py": "shows them to an operator",
    "payrelay/flows/operators/acts/targets.py": "shows them to an operator",
    "payrelay/flows/alerts/alert_messages.py": "shows them to an operator",
    "payrelay/store/inbox.py": "stores them",
}
"""Modules that read the fields, and decide nothing by them."""
_ROW: Final = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \| ([^|]*) \|", re.MULTILINE)
_TEST: Final = re.compile(r"\[`(test_\w+)`\]\(\.\./([\w/.]+)\)")


def words(cell: str) -> frozenset[str]:
    """Gives what stands in backquotes."""
    return frozenset(re.findall(r"`(\w+)`", cell))


def tables() -> tuple[dict[frozenset[str], frozenset[str]], frozenset[str]]:
    """Gives the fields of each row of the first table with its modules, and the fields of the second table."""
    first, _, second = SECTION.partition("| field of the form |")
    return (
        {words(fields): words(modules) for fields, modules in _ROW.findall(first)},
        frozenset(name for fields, _ in _ROW.findall(second) for name in words(fields)),
    )


def reads_in(source: Source) -> set[str]:
    """Gives the members of a notification that a module reads."""
    return {
        node.attr
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and node.attr in MEMBERS and _is_holder(node.value)
    }


def _is_holder(value: ast.expr) -> bool:
    name = value.id if isinstance(value, ast.Name) else value.attr if isinstance(value, ast.Attribute) else None
    return name in HOLDERS


@cache
def readers() -> dict[str, frozenset[str]]:
    """Gives the modules that decide by each member, by their names without folders."""
    found: dict[str, set[str]] = defaultdict(set)
    for source in OURS:
        place = str(source.path.relative_to(ROOT / "src"))
        if place not in ONLY_KEEP_OR_SHOW and not place.startswith("payrelay/cli/"):
            for member in reads_in(source):
                found[member].add(source.path.stem)
    return {member: frozenset(modules) for member, modules in found.items()}


def test_every_field_of_a_notification_is_in_the_table() -> None:
    """A field that is missing there has perhaps been believed by itself."""
    listed = [name for fields in tables()[0] for name in fields]

    assert sorted(listed) == sorted(MEMBERS)


@pytest.mark.parametrize("fields", tables()[0], ids=lambda fields: ", ".join(sorted(fields)))
def test_a_field_is_decided_by_where_the_table_says(fields: frozenset[str]) -> None:
    """Whoever makes another module decide by a field has to say there what proves it."""
    deciding = frozenset[str]().union(*(readers().get(name, frozenset()) for name in fields))

    assert deciding == tables()[0][fields]


def test_a_new_reader_is_found() -> None:
    """The test above would be worth nothing if it did not see a read."""
    tree = ast.parse("def f(context): return context.content.payment_id or notification.order_id or other.currency")
    reads = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and _is_holder(node.value)}

    assert reads == {"payment_id", "order_id"}


def test_each_field_has_a_test_that_exists() -> None:
    """A test that was renamed or removed leaves a claim bare."""
    rows = [line for line in SECTION.partition("| field of the form |")[0].splitlines() if line.startswith("| `")]
    named = [_TEST.findall(row) for row in rows]

    assert all(named)
    for name, path in (each for tests in named for each in tests):
        tree = ast.parse((ROOT / path).read_text())
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}, (
            f"{path} has no {name}"
        )


def test_every_field_of_the_form_is_in_the_table() -> None:
    """A customer can edit each of them; a new one must say what compares it."""
    plan = msgspec.structs.replace(
        PLAN, startup_fee_minor=1, auto_cancel=True, max_retries=1, is_recovery_due=True, starts_on=date(2030, 1, 1)
    )
    payment = asked(
        kind=CheckoutKind.RECURRING,
        plan=plan,
        delivery=PostalAddress(address="1 Galle Road", city="Colombo", country="Sri Lanka"),
        item_list=(Item(name="Bell", number="1", quantity=1, unit_amount_minor=1),),
        custom_1="a",
        custom_2="b",
        platform="web",
        payment_method="VISA",
    )

    assert frozenset(build_form(MERCHANT, payment, RETURNS, today=TODAY).fields) == tables()[1]
