import pytest

from payrelay_simulator import Arguments, ControlError, Match, Rule, Schedule
from payrelay_simulator.faults import KINDS, Faults


def names(faults: Faults, *order_ids: str) -> list[str | None]:
    """Draw for charges of these orders and return what strikes each."""
    drawn = [faults.draw("charge", order_id) for order_id in order_ids]
    return [None if fault is None else fault.name for fault in drawn]


def test_rule_strikes_as_often_as_it_says() -> None:
    """A script is exact: two times means two times."""
    faults = Faults()
    faults.add_rules(Rule(fault="cut_after", times=2))

    assert names(faults, "A", "B", "C") == ["cut_after", "cut_after", None]
    assert faults.pending == ()


def test_rule_without_times_strikes_always() -> None:
    """An outage lasts until it is ended."""
    faults = Faults()
    faults.add_rules(Rule(fault="cut_before", times=None))
    assert names(faults, "A", "B") == ["cut_before"] * 2

    faults.clear()

    assert names(faults, "C") == [None]


def test_rule_strikes_only_what_matches() -> None:
    """A fault can be put on one order of many, and on one endpoint."""
    faults = Faults()
    faults.add_rules(Rule(fault="cut_after", match=Match(endpoint="charge", order_id="B")))
    assert faults.draw("search", "B") is None

    assert names(faults, "A", "B", "B") == [None, "cut_after", None]


def test_earlier_rule_goes_first() -> None:
    """A script is read from top to bottom."""
    faults = Faults()
    faults.add_rules(Rule(fault="hang_after"), Rule(fault="decline"))

    assert names(faults, "A", "B") == ["hang_after", "decline"]


def test_decline_waits_for_a_charge() -> None:
    """A fault that fits one endpoint is not used up by another."""
    faults = Faults()
    faults.add_rules(Rule(fault="decline"))

    assert faults.draw("token", None) is None
    assert names(faults, "A") == ["decline"]


@pytest.mark.parametrize(
    ("match", "struck"),
    [
        (Match(), False),
        (Match(order_id="A"), True),
        (Match(order_id="B"), False),
        (Match(endpoint="installment"), True),
        (Match(endpoint="installment", order_id="A"), True),
        (Match(endpoint="charge", order_id="A"), False),
    ],
)
def test_installment_is_struck_where_it_is_named(match: Match, *, struck: bool) -> None:
    """Nobody calls for it: a rule for the next payment must not be used up by another customer's month."""
    faults = Faults()
    faults.add_rules(Rule(fault="decline", match=match))

    assert (faults.draw("installment", "A") is not None) is struck
    assert len(faults.pending) == (0 if struck else 1)


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if not kind.endpoints])
def test_what_happens_to_calls_happens_to_no_installment(name: str) -> None:
    """An installment has no connection that could be cut and no body that could be spoilt."""
    with pytest.raises(ControlError, match=r"script\[0\].match.endpoint"):
        Faults().add_rules(Rule(fault=name, match=Match(endpoint="installment")))


def test_schedule_draws_for_installments_beside_the_calls() -> None:
    """Which calls are struck must not depend on how many months pass between them."""
    schedule = Schedule(seed=11, probabilities={"decline": 0.5}, endpoints=["charge", "installment"])
    alone, beside = Faults(), Faults()
    alone.set_schedule(schedule)
    beside.set_schedule(schedule)
    drawn = [(names(beside, "A"), beside.draw("installment", "S")) for _ in range(16)]

    assert [name for (name,), _ in drawn] == names(alone, *"ABCDEFGHIJKLMNOP")
    assert {None if fault is None else fault.name for _, fault in drawn} == {None, "decline"}


def test_schedule_that_names_no_endpoint_strikes_no_installment() -> None:
    """Who has one charge in two declined did not ask for plans that stop."""
    faults = Faults()
    faults.set_schedule(Schedule(seed=1, probabilities={"decline": 1.0}))

    assert faults.draw("installment", "S") is None
    assert names(faults, "A") == ["decline"]


def test_same_seed_strikes_the_same_calls() -> None:
    """A run that went wrong can be repeated from its seed."""
    schedule = Schedule(seed=11, probabilities={"cut_after": 0.3, "html_502_before": 0.3})
    runs = []
    for _ in range(2):
        faults = Faults()
        faults.set_schedule(schedule)
        runs.append(names(faults, *"ABCDEFGHIJKLMNOP"))

    assert runs[0] == runs[1]
    assert set(runs[0]) == {"cut_after", "html_502_before", None}


def test_schedule_keeps_to_its_endpoints_and_draws_for_all() -> None:
    """A call of another kind gets no fault, and still takes its draw."""
    faults = Faults()
    faults.set_schedule(Schedule(seed=1, probabilities={"cut_after": 1.0}, endpoints=["charge"]))

    assert faults.draw("search", "A") is None
    assert names(faults, "A") == ["cut_after"]


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        (Rule(fault="earthquake"), r"script\[0\].fault"),
        (Rule(fault="decline", match=Match(endpoint="search")), r"script\[0\].match.endpoint"),
        (Rule(fault="cut_after", args=Arguments(amount=5)), r"script\[0\].args.amount"),
    ],
)
def test_wrong_rule_is_named_and_none_is_added(rule: Rule, field: str) -> None:
    """A fault that could never strike would leave a test proving nothing."""
    faults = Faults()
    with pytest.raises(ControlError, match=field):
        faults.add_rules(rule)

    assert faults.pending == ()


@pytest.mark.parametrize(
    ("probabilities", "field"),
    [({"earthquake": 0.1}, "probabilities.earthquake"), ({"cut_after": 0.6, "cut_before": 0.6}, "probabilities")],
)
def test_wrong_schedule_is_named(probabilities: dict[str, float], field: str) -> None:
    """Chances sum to one at most, and only for faults that there are."""
    with pytest.raises(ControlError, match=field):
        Faults().set_schedule(Schedule(seed=1, probabilities=probabilities))


def test_script_has_a_limit() -> None:
    """Everything has a maximum."""
    with pytest.raises(ControlError, match="script"):
        Faults().add_rules(*[Rule(fault="decline")] * 1_001)


def test_faults_that_strike_before_have_no_effect_by_name() -> None:
    """The names say it: what ends in _before strikes instead of the operation, _after when it is done."""
    assert all(kind.step == "instead" for name, kind in KINDS.items() if name.endswith("_before"))
    assert all(kind.step == "after" for name, kind in KINDS.items() if name.endswith("_after"))
