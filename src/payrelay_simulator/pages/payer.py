"""A payer at the hosted pages without a socket: for tests and simulations, as `Caller` is for the merchant API."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from payrelay_simulator.errors import ControlError
from payrelay_simulator.pages.cards import Typed, means_of
from payrelay_simulator.pages.forms import Page, read_form
from payrelay_simulator.pages.hosted import cancel, open_visit, pay
from payrelay_simulator.pages.visits import Visit
from payrelay_simulator.world import World

# The sandbox's Visa that pays.
GOOD_CARD = "4916217501611292"


class Payer:
    """Somebody with test cards. When a method returns, all has happened; notifications are only planned then."""

    def __init__(self, world: World, *, referer: str = "http://shop.example/") -> None:
        self._world = world
        self._referer = referer

    def enter(self, page: Page, form: Mapping[str, str] | Sequence[tuple[str, str]]) -> Visit:
        """Bring a merchant's form to a page; a PageError says how it is refused.

        A form that is given as pairs may have a field twice.
        """
        self._world.elapse()
        checked = read_form(
            page,
            urlencode(form).encode(),
            content_type="application/x-www-form-urlencoded",
            referer=self._referer,
            merchants=self._world.merchants,
            switches=self._world.switches,
            now=self._world.clock.now(),
        )
        return open_visit(self._world, checked)

    def pay(self, visit: Visit, number: str = GOOD_CARD, *, method: str = "") -> Visit:
        """Pay with a card or, by its method, a wallet, and return the visit as it stands: paid, or open with a refusal.

        A ControlError names the input in which the page would show a slip.
        """
        typed = Typed(method=method, holder_name="S Perera", number=number, expiry="12/29", security_code="123")
        means = means_of(typed, visit.form.methods)
        if isinstance(means, dict):
            name, message = next(iter(means.items()))
            raise ControlError(name, message)
        self._world.elapse()
        return pay(self._world, self._present(visit), means)

    def cancel(self, visit: Visit) -> Visit:
        """Go back to the merchant without paying; a visit that was paid stays so."""
        return cancel(self._world, self._present(visit))

    def _present(self, visit: Visit) -> Visit:
        return self._world.visits.find(visit.visit_id) or visit
