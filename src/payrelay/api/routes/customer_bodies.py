"""The bodies of stored customers: a token that is handed over, and other names."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from payrelay.api.routes.bodies import Text
from payrelay.api.routes.card_texts import CardExpiry, MaskedCard
from payrelay.api.routes.checkout_bodies import VeiledBody
from payrelay.core.customers.customer import HandedOver
from payrelay.core.secret import Secret
from payrelay.errors import FieldError
from payrelay.flows.customers.change_customer import NewNames

_Reference = Annotated[Text, Meta(description="Your own name for the person; customers are found by it.")]
_Label = Annotated[Text, Meta(description="For people.")]


class CustomerBody(VeiledBody, frozen=True, kw_only=True):
    """The body that hands a gateway's token over."""

    customer_token: Annotated[Text, Meta(description="The gateway's token, as its notification brought it.")]
    reference: _Reference | None = None
    label: _Label | None = None
    method: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=32,
                extra_json_schema={"pattern": r"^[^\x00]*$"},
                description="Such as `VISA`.",
            ),
        ]
        | None
    ) = None
    card_no_masked: MaskedCard | None = None
    card_expiry: CardExpiry | None = None
    card_holder: (
        Annotated[Text, Meta(description="The name on the card; it is kept sealed, and never shown.")] | None
    ) = None

    def given(self) -> HandedOver:
        """Gives what is handed over."""
        return HandedOver(
            token=Secret(self.customer_token),
            reference=self.reference,
            label=self.label,
            method=self.method,
            card_no_masked=None if self.card_no_masked is None else str(self.card_no_masked),
            card_expiry=None if self.card_expiry is None else str(self.card_expiry),
            card_holder=self.card_holder,
        )


class CustomerNamesBody(VeiledBody, frozen=True, kw_only=True):
    """The body that gives a customer other names; what is not there stays as it is, null takes a name away."""

    reference: _Reference | UnsetType | None = UNSET
    label: _Label | UnsetType | None = UNSET

    @classmethod
    def together_errors(cls, members: dict[str, object]) -> Iterator[FieldError]:
        """Finds that nothing is to be changed."""
        if not ("reference" in members or "label" in members):
            yield FieldError("label", "is required, or reference")

    def names(self) -> NewNames:
        """Gives the names that are asked for."""
        return NewNames(reference=self.reference, label=self.label)
