"""Structs that are made of the members of other values."""

import msgspec
import pytest

from payrelay.core.views import view_of, with_members_of


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A source with more than is shown of it."""

    id: str
    secret: str = "hidden"

    @property
    def is_final(self) -> bool:
        """A member that follows from others."""
        return True


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown of it."""

    id: str
    is_final: bool
    text: str


def test_members_of_the_same_name_are_copied_and_no_others() -> None:
    """A view has what its type declares, whatever else the source knows: nothing is shown by accident."""
    assert with_members_of(Known(id="1"), Shown, text="words") == Shown(id="1", is_final=True, text="words")


def test_what_is_given_wins_over_the_source() -> None:
    """A view may write a member in another way than the source has it."""
    assert with_members_of(Known(id="1"), Shown, id="2", text="words").id == "2"


def test_a_member_that_nobody_has_is_an_error() -> None:
    """A member that was forgotten is found by the first call, and never sent as something empty."""
    with pytest.raises(TypeError):
        with_members_of(Known(id="1"), Shown)


class Timed(msgspec.Struct, frozen=True, kw_only=True):
    """A source with times and amounts as they are stored."""

    begun_at_ms: int
    ended_at_ms: int | None
    amount_minor: int | None


class TimedView(msgspec.Struct, frozen=True, kw_only=True):
    """What clients see of it."""

    begun_at: str
    ended_at: str | None
    amount: msgspec.Raw


def test_times_and_amounts_are_written_as_clients_see_them() -> None:
    """One rule for all views: no client gets a time in milliseconds, or an amount in hundredths."""
    view = view_of(Timed(begun_at_ms=0, ended_at_ms=None, amount_minor=34_567), TimedView)
    assert (view.begun_at, view.ended_at, bytes(view.amount)) == ("1970-01-01T00:00:00.000Z", None, b"345.67")


def test_what_is_given_wins_over_a_time_and_an_amount() -> None:
    """A view may write these in another way too."""
    timed = Timed(begun_at_ms=0, ended_at_ms=None, amount_minor=None)
    view = view_of(timed, TimedView, begun_at="now", amount=msgspec.Raw(b'"open"'))
    assert (view.begun_at, bytes(view.amount)) == ("now", b'"open"')
