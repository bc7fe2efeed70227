"""What the tests of hosted pages share: visits begun with a form, without a socket."""

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from tests.payrelay_simulator.shop import a_form

from payrelay_simulator import World
from payrelay_simulator.pages.forms import Page, read_form
from payrelay_simulator.pages.hosted import open_visit
from payrelay_simulator.pages.visits import Visit

Opens = Callable[..., Visit]


@pytest.fixture
def opened(world: World) -> Opens:
    """Return what begins a visit: a page, the amount that is signed, and changes to the form."""

    def begin(page: Page = "checkout", signed: str = "1000.00", **changes: str) -> Visit:
        form = read_form(
            page,
            urlencode(a_form(signed, **changes)).encode(),
            content_type="application/x-www-form-urlencoded",
            referer="http://shop.example/",
            merchants=world.merchants,
            switches=world.switches,
            now=world.clock.now(),
        )
        return open_visit(world, form)

    return begin
