"""What a cell of the matrix came to."""

from dataclasses import dataclass, field

from tests.matrix.cells import Cell
from tests.matrix.errand_cells import ErrandCell
from tests.matrix.recovery_cells import RecoveryCell


@dataclass(kw_only=True)
class Result:
    """What a cell came to.

    Attributes:
        cell: which one.
        state: in which the operation is in the end; of an errand ``done``.
        effects: how often it was done at the gateway.
        elapsed_s: how long all of it took.
        failures: what was not as promised.
    """

    cell: Cell | ErrandCell | RecoveryCell
    state: str = ""
    effects: int = 0
    elapsed_s: float = 0.0
    failures: list[str] = field(default_factory=list)
