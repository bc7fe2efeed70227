from collections.abc import Callable

import msgspec
import pytest
from tests.samples import OPERATION

from payrelay.core.payments.operation import Operation

MakeOperation = Callable[..., Operation]


@pytest.fixture(scope="session")
def make_operation() -> MakeOperation:
    """Gives a maker of operations: a charge under way, but for what is named."""

    def make(**members: object) -> Operation:
        return msgspec.structs.replace(OPERATION, **members)

    return make
