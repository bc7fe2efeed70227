import msgspec
import pytest

from payrelay.core.gateways.pauses import Pause
from payrelay.store.engine.rows import blob_of, struct_of


def test_a_row_is_a_value_by_the_order_of_its_columns() -> None:
    """Statements name their columns in the order of the members; a test of each noun holds that."""
    assert struct_of(("shop", 1, "because", "Nimal"), Pause) == Pause(
        account="shop", since_ms=1, reason="because", operator="Nimal"
    )


def test_a_row_of_another_shape_is_no_value() -> None:
    """A statement that lost a column would otherwise give each member its neighbour's value."""
    with pytest.raises(ValueError, match="shorter"):
        struct_of(("shop", 1, "because"), Pause)
    with pytest.raises(msgspec.ValidationError, match="since_ms"):
        struct_of(("shop", "1", "because", "Nimal"), Pause)


def test_a_sealed_column_holds_bytes() -> None:
    """A text there was put in by somebody else, and is not opened."""
    assert blob_of(b"sealed") == b"sealed"
    with pytest.raises(TypeError, match="holds bytes"):
        blob_of("text")
