"""A sample of the crash matrix; all of it is ``make crash-matrix``."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
from tests.draws import drawing
from tests.matrix.campaign import live_all
from tests.matrix.cells import Cell, cells_of, rehearsals_of
from tests.matrix.deeds import DEEDS
from tests.matrix.errand_cells import ErrandCell, errand_cells_of, errand_rehearsals_of
from tests.matrix.recovery_cells import RecoveryCell, recovery_cells_of, recovery_rehearsals_of
from tests.matrix.stores import Postgresql, Sqlite, Store

from payrelay.core.payments.operation import Kind
from payrelay.runtime.hooks import FlowPoint, OperationPoint

if TYPE_CHECKING:
    from tests.conftest import PostgresqlServer

AnyCell = TypeVar("AnyCell")

AT_ONCE = 12  # most of the time each of them waits


def live_well(cells: Iterable[Cell | ErrandCell | RecoveryCell], stores: Mapping[str, Store], root: Path) -> None:
    """Lives through the cells; a failure names the cell, which ``make crash-matrix ONLY="…"`` repeats."""
    results = live_all(cells, stores, root, at_once=AT_ONCE)
    failed = [f"{result.cell}: {'; '.join(result.failures)}" for result in results if result.failures]
    assert failed == []


def drawn(cells: Iterable[AnyCell], count: int) -> list[AnyCell]:
    """Draws cells, others at each commit: in the end all of them are seen here too."""
    return drawing("cells").sample(list(cells), count)


@pytest.mark.unit
def test_no_stage_is_forgotten() -> None:
    """The program itself says which stages there are; a new one must get its cells."""
    assert {cell.crash_point for cell in cells_of("any") if cell.crash_point} == set(OperationPoint)
    assert {cell.crash_point for cell in errand_cells_of("any")} == set(FlowPoint)


@pytest.mark.unit
def test_no_kind_of_operation_is_forgotten() -> None:
    """A new one must get its deed; a refund is one whole and in part, a charge one by a token and by a handle."""
    kinds = {deed.name.removeprefix("partial ").removesuffix(" by handle") for deed in DEEDS}
    assert kinds == {kind.stored for kind in Kind}


def test_a_charge_may_die_at_every_stage(tmp_path: Path) -> None:
    """Wherever the process is killed: charged once at most, no false answer, and what can be known becomes known."""
    cells = [cell for cell in (*rehearsals_of("sqlite"), *cells_of("sqlite")) if cell.deed.name == "charge"]
    live_well(cells, {"sqlite": Sqlite(tmp_path)}, tmp_path)


@pytest.mark.postgresql
def test_every_operation_may_die_anywhere(tmp_path: Path, postgresql_server: "PostgresqlServer") -> None:
    """The same for cells that are drawn from all others, on either store."""
    stores: dict[str, Store] = {"sqlite": Sqlite(tmp_path), "postgresql": Postgresql(tmp_path, postgresql_server)}
    live_well(drawn(cells_of("postgresql"), 6) + drawn(cells_of("sqlite"), 6), stores, tmp_path)


@pytest.mark.postgresql
def test_every_errand_may_die_anywhere(tmp_path: Path, postgresql_server: "PostgresqlServer") -> None:
    """What comes in and what is told: nothing lost, nothing twice; run once without dying, and drawn deaths."""
    stores: dict[str, Store] = {"sqlite": Sqlite(tmp_path), "postgresql": Postgresql(tmp_path, postgresql_server)}
    deaths = drawn(errand_cells_of("postgresql"), 6) + drawn(errand_cells_of("sqlite"), 6)
    live_well([*errand_rehearsals_of("sqlite"), *deaths], stores, tmp_path)


@pytest.mark.postgresql
def test_what_a_recovery_holds_adopts_and_decides_may_die_anywhere(
    tmp_path: Path, postgresql_server: "PostgresqlServer"
) -> None:
    """The service and the operator's command are killed: nothing is done twice, and nothing held is forgotten."""
    stores: dict[str, Store] = {"sqlite": Sqlite(tmp_path), "postgresql": Postgresql(tmp_path, postgresql_server)}
    rehearsals = drawn(recovery_rehearsals_of("sqlite"), 3)
    deaths = drawn(recovery_cells_of("postgresql"), 4) + drawn(recovery_cells_of("sqlite"), 4)
    live_well([*rehearsals, *deaths], stores, tmp_path)
