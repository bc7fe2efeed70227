"""What the tests of hosted pages share: visits begun with a form, without a socket."""

from collections.abc import Callable

import pytest
from tests.payrelay_simulator.shop import a_form

from payrelay_simulator import Payer, World
from payrelay_simulator.pages.forms import Page
from payrelay_simulator.pages.visits import Visit

Opens = Callable[..., Visit]


@pytest.fixture
def opened(world: World) -> Opens:
    """Return what begins a visit: a page, the amount that is signed, and changes to the form."""

    def begin(page: Page = "checkout", signed: str = "1000.00", **changes: str) -> Visit:
        return Payer(world).enter(page, a_form(signed, **changes))

    return begin
