"""The settings of an identity provider whose tokens clients have."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator

from payrelay.core.access.client_token import USUAL_SCOPES
from payrelay.core.access.credential import Scope
from payrelay.settings import parse


class IdentitySettings(BaseModel):
    """An identity provider whose tokens the API accepts; see ``core.access.identity_provider.IdentityProvider``."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    jwks_url: Annotated[str, AfterValidator(parse.private_address_with_query)]
    """The address of its keys."""
    issuer: Annotated[str, Field(min_length=1)]
    audience: Annotated[str, Field(min_length=1)]
    principal: Annotated[str, Field(min_length=1)]
    """The principal whose customers the bearers are: the name of a backend's key."""
    customer_claim: Annotated[str, Field(min_length=1)] = "sub"
    customer_claim_is: Literal["reference", "customer"] = "reference"
    order_claim: Annotated[str, Field(min_length=1)] | None = None
    amount_claim: Annotated[str, Field(min_length=1)] | None = None
    currency_claim: Annotated[str, Field(min_length=1)] | None = None
    scopes: Annotated[frozenset[Scope], PlainValidator(parse.client_scopes)] = USUAL_SCOPES
    accounts: Annotated[frozenset[str], BeforeValidator(parse.parts)] = frozenset()
    """The accounts that its tokens may use; empty for all."""
