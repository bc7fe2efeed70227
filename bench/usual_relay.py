"""The relay that most people would write: FastAPI, httpx and pydantic, without a journal.

It is written to be as good as this kind gets: one pooled client for the life of the process, room for every connection
to be kept open, the gateway's token cached and renewed under a lock, typed bodies in and out, one API key compared in
constant time. What it lacks is what Payrelay is for: it stores nothing, so a repeated request charges again.
"""

import asyncio
import hmac
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Literal

import httpx
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, Field

BASE_URL = os.environ["USUAL_BASE_URL"]
APP_ID = os.environ["USUAL_APP_ID"]
APP_SECRET = os.environ["USUAL_APP_SECRET"]
API_KEY = os.environ["USUAL_API_KEY"]

TIMEOUT_S = 30
CONNECTIONS_MAX = 100
TOKEN_MARGIN_S = 30


class Item(BaseModel):
    """One line of a charge's item list."""

    name: str
    number: str
    quantity: int
    unit_amount: float


class ChargeRequest(BaseModel):
    """The body of a charge."""

    type: Literal["PAYMENT", "AUTHORIZE"]
    order_id: str = Field(min_length=1, max_length=255)
    items: str = Field(min_length=1, max_length=1000)
    currency: str = Field(pattern="^[A-Z]{3}$")
    amount: float = Field(gt=0)
    customer_token: str
    custom_1: str | None = None
    custom_2: str | None = None
    notify_url: str | None = None
    itemList: list[Item] | None = None  # noqa: N815 - the interface's spelling


class ChargeData(BaseModel):
    """What the gateway tells of a charge."""

    order_id: str
    items: str
    currency: str
    amount: float
    custom_1: str | None
    custom_2: str | None
    payment_id: int
    status_code: int
    status_message: str
    md5sig: str | None
    authorization_token: str | None


class ChargeAnswer(BaseModel):
    """The envelope of a charge."""

    status: int
    msg: str
    data: ChargeData | None


class DeliveryDetails(BaseModel):
    """Where the goods went."""

    address: str
    city: str
    country: str


class Customer(BaseModel):
    """Who paid."""

    fist_name: str
    last_name: str
    email: str | None = None
    phone: str
    delivery_details: DeliveryDetails


class AmountDetail(BaseModel):
    """What was paid and what it cost."""

    currency: str
    gross: float
    fee: float
    net: float
    exchange_rate: float
    exchange_from: str
    exchange_to: str


class PaymentMethod(BaseModel):
    """What it was paid with."""

    method: str
    card_customer_name: str
    card_no: str


class LineItem(BaseModel):
    """One line of a payment."""

    name: str
    quantity: int
    currency: str
    unit_price: float
    total_price: float


class Payment(BaseModel):
    """One payment of an order."""

    payment_id: int
    order_id: str
    date: str
    description: str
    status: str
    currency: str
    amount: float
    customer: Customer
    amount_detail: AmountDetail
    payment_method: PaymentMethod
    items: list[LineItem] | None


class PaymentsAnswer(BaseModel):
    """The envelope of an order's payments."""

    status: int
    msg: str
    data: list[Payment] | None


class Gateway:
    """The gateway's client: one pool, one cached token."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._token = ""
        self._token_ends_s = 0.0
        self._renewing = asyncio.Lock()

    async def _authorization(self) -> dict[str, str]:
        if time.monotonic() >= self._token_ends_s:
            async with self._renewing:
                if time.monotonic() >= self._token_ends_s:
                    await self._renew()
        return {"Authorization": f"Bearer {self._token}"}

    async def _renew(self) -> None:
        reply = await self._client.post(
            "/merchant/v1/oauth/token", data={"grant_type": "client_credentials"}, auth=(APP_ID, APP_SECRET)
        )
        reply.raise_for_status()
        token = reply.json()
        self._token = token["access_token"]
        self._token_ends_s = time.monotonic() + token["expires_in"] - TOKEN_MARGIN_S

    async def charge(self, body: ChargeRequest) -> ChargeAnswer:
        """Charges, and gives the gateway's answer."""
        reply = await self._client.post(
            "/merchant/v1/payment/charge",
            json=body.model_dump(exclude_none=True),
            headers=await self._authorization(),
        )
        return ChargeAnswer.model_validate_json(reply.content)

    async def payments(self, order_id: str) -> PaymentsAnswer:
        """Gives the payments of one order."""
        reply = await self._client.get(
            "/merchant/v1/payment/search", params={"order_id": order_id}, headers=await self._authorization()
        )
        return PaymentsAnswer.model_validate_json(reply.content)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Keeps one client open for as long as the server runs."""
    limits = httpx.Limits(max_connections=CONNECTIONS_MAX, max_keepalive_connections=CONNECTIONS_MAX)
    async with httpx.AsyncClient(base_url=BASE_URL, timeout=TIMEOUT_S, limits=limits) as client:
        app.state.gateway = Gateway(client)
        yield


async def gateway_of(request: Request) -> Gateway:
    """Gives the one client."""
    gateway = request.app.state.gateway
    assert isinstance(gateway, Gateway)
    return gateway


async def require_key(credentials: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]) -> None:
    """Lets in who holds the key."""
    if not hmac.compare_digest(credentials.credentials, API_KEY):
        raise HTTPException(status_code=401, detail="Unauthorized")


app = FastAPI(title="The usual relay", lifespan=lifespan)


@app.get("/health/ready")
async def ready() -> dict[str, str]:
    """Says that it is up."""
    return {"status": "ok"}


@app.post("/gateway/api/payments/charge", dependencies=[Depends(require_key)])
async def charge(body: ChargeRequest, gateway: Annotated[Gateway, Depends(gateway_of)]) -> ChargeAnswer:
    """Charges a customer who has approved it."""
    return await gateway.charge(body)


@app.get("/gateway/api/payments/{order_id}", dependencies=[Depends(require_key)])
async def payments(order_id: str, gateway: Annotated[Gateway, Depends(gateway_of)]) -> PaymentsAnswer:
    """Gives the payments of one order."""
    return await gateway.payments(order_id)
