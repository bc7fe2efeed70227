from hypothesis import given
from hypothesis import strategies as st

from payrelay.runtime.ids import new_id

times_ms = st.integers(0, 2**48 - 1)


@given(earlier=times_ms, later=times_ms)
def test_ids_sort_by_the_time_of_their_making(earlier: int, later: int) -> None:
    """The list of operations is read newest first by the id alone."""
    ids = [new_id("op", now_ms) for now_ms in (earlier, later)]
    if earlier != later:
        assert (ids[0] < ids[1]) is (earlier < later)
    assert {len(operation_id) for operation_id in ids} == {35}


def test_ids_of_one_millisecond_differ() -> None:
    """80 bits of chance: two processes never make the same."""
    assert len({new_id("op", 0) for _ in range(1000)}) == 1000
