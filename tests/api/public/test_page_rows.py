from datetime import date

import msgspec
from tests.samples import ASKED, CHECKOUT

from payrelay.api.public.language import language
from payrelay.api.public.page_rows import rows_of
from payrelay.core.checkouts.checkout import Details
from payrelay.core.checkouts.hosted_payment import Plan


def test_a_plan_that_begins_later_names_its_day() -> None:
    """In the reader's way."""
    plan = Plan(recurrence="1 Month", duration="Forever", starts_on=date(2027, 3, 9))
    details = Details(secret="s", asked=msgspec.structs.replace(ASKED, plan=plan))
    rows = dict(rows_of(CHECKOUT, details, language("ta")))

    assert rows["First payment on"] == "9 மார்ச், 2027"
    assert rows["Duration"] == "நிறுத்தப்படும் வரை"
