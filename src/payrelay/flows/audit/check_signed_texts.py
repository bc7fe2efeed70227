"""Says of each account whether a notification can prove a lost authorization, and what to do where it can't."""

from collections.abc import Iterable, Mapping
from typing import Final

from payrelay.gateways.gateway import CheckResult, Gateway
from payrelay.store.database.identity import IdentityStore
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal

SUBJECT: Final = "signed texts"
_OPERATOR: Final = "an authorization whose reply is lost needs an operator"


async def check_signed_texts(database: Database, seal: Seal, accounts: Mapping[str, Gateway]) -> list[CheckResult]:
    """Gives one result for each account that can check a notification. Raises StoreUnavailable."""
    is_lost = (await IdentityStore(database, seal).read()).has_lost_commits
    results = []
    for name, account in accounts.items():
        if account.capabilities.unset_for_checkouts:
            continue  # without a secret no notification is believed
        of_merchant = {each: other for each, other in accounts.items() if other.merchant == account.merchant}
        text, is_warning = _text(of_merchant, is_lost=is_lost)
        subject = f"{name}: {SUBJECT}"
        results.append(CheckResult(subject=subject, is_right=True, text=text, is_warning=is_warning))
    return results


def _text(of_merchant: Mapping[str, Gateway], *, is_lost: bool) -> tuple[str, bool]:
    """Gives the sentence, and whether it is a warning."""
    unset = [name for name, account in of_merchant.items() if account.capabilities.signs_elsewhere is None]
    told = [name for name, account in of_merchant.items() if account.capabilities.signs_elsewhere]
    if unset:
        text = (
            f"{_settings(unset)} is not set, which counts as true: {_OPERATOR}. Set it to false if nothing but Payrelay"
            " signs forms with this MERCHANT_SECRET, and to true if something does"
        )
        return text, True
    if told:
        return f"{_settings(told)} is true: {_OPERATOR}", False
    if is_lost:
        text = f"the database lost commits, and signed texts with them, which counts as signed elsewhere: {_OPERATOR}"
        return text, True
    return "nothing but Payrelay signs: a notification can prove an authorization whose reply was lost", False


def _settings(names: Iterable[str]) -> str:
    return ", ".join(f"PAYRELAY_GATEWAYS__{name.upper()}__SIGNS_ELSEWHERE" for name in sorted(names))
