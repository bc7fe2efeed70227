import pytest

from payrelay_simulator.signature import md5_upper, md5sig, spoiled

SECRET = "MzExMTIyMjMzMw=="


def test_secret_is_digested_in_upper_case() -> None:
    """The digest of the secret is upper-cased, not the secret; the order of the two is a common mistake."""
    assert md5_upper(SECRET) == "312A50CD80B9270F0260D6CB4749C732"
    assert md5_upper("x" * 32) == "DC8FE1D6497EBD23F5975D8D2A1C5E81"


@pytest.mark.parametrize(
    ("status_code", "signature"),
    [
        ("2", "340FD7FB0227389003098695F91ADB87"),
        ("0", "AB4FB1B4CC0CE874FB45BA3525DD677B"),
        ("-1", "7C2A2EFEC0E4D4B04342D15F3779ECD1"),
        ("-2", "3FDC8692814B35AA989C9496E860F290"),
        ("-3", "88C4D80DCAB1A61E8D952BEAEFE8E2ED"),
        ("3", "A72D1C23477DE3870E665C61DFF723C6"),
    ],
)
def test_signature_agrees_with_published_vectors(status_code: str, signature: str) -> None:
    """Every status code's vector holds, so that a client verified here verifies at the gateway."""
    assert md5sig("1211149", "Order12345", "1000.00", "LKR", status_code, merchant_secret=SECRET) == signature


def test_form_hash_is_the_same_without_a_status_code() -> None:
    """The hash of the hosted forms uses the same rule over fewer parts."""
    assert md5sig("1211149", "Order12345", "1000.00", "LKR", merchant_secret=SECRET) == (
        "B34BC29666CF0280A3097909DFBE8477"
    )


def test_spoiled_signature_has_the_form_and_never_the_value() -> None:
    """A wrong signature differs in every digit, so that no check can accept it by luck."""
    signature = md5sig("1211149", merchant_secret=SECRET)

    assert all(a != b for a, b in zip(signature, spoiled(signature), strict=True))
    assert set(spoiled(signature)) <= set("0123456789ABCDEF")
