"""Examples of bodies and answers for the docs page: what `payrelay demo` takes, and answers.

The cards, holds, payments and subscriptions in them are those of the demo: a reader can send them as they stand.
Identifiers of the service's own, such as of a customer, are new in each demo.
"""

from typing import Final

_CARD: Final = "D3A0" * 8
_PAID: Final = 320025000009
_PAID_TWICE: Final = "320025000010"

CHARGE: Final[dict[str, object]] = {
    "type": "PAYMENT",
    "order_id": "Order12345",
    "items": "Taxi Hire 123",
    "currency": "LKR",
    "amount": 345.67,
    "customer_token": _CARD,
    "custom_1": "booking 7",
    "custom_2": None,
    "notify_url": "https://shop.example/notifications",
    "itemList": [
        {"name": "Taxi fare", "number": "001", "quantity": 1, "unit_amount": 300.0},
        {"name": "Tip", "number": "002", "quantity": 1, "unit_amount": 45.67},
    ],
}
AUTHORIZATION: Final[dict[str, object]] = {
    "type": "AUTHORIZE",
    "order_id": "Order12346",
    "items": "Hotel room 4",
    "currency": "LKR",
    "amount": 100,
    "customer_token": _CARD,
}
CAPTURE: Final[dict[str, object]] = {
    "authorization_token": "d3a0d3a0-0000-4000-8000-000000000001",
    "amount": 80,
    "deduction_details": "Item 1 is out of stock",
}
REFUND: Final[dict[str, object]] = {"payment_id": str(_PAID), "description": "Item is out of stock"}
REFUND_PART: Final[dict[str, object]] = {**REFUND, "payment_id": _PAID_TWICE, "amount": "100.50"}
VOID: Final[dict[str, object]] = {
    "authorization_token": "d3a0d3a0-0000-4000-8000-000000000002",
    "description": "The guest did not come",
}

CLIENT_TOKEN: Final[dict[str, object]] = {
    "customer_id": "cus_019c8b2f5a7e4d10b6f3a92c7e08d154",
    "order_id": "Order12345",
    "amount": 345.67,
    "currency": "LKR",
    "scopes": ["payments:charge", "payments:read", "operations:read"],
    "expires_in_s": 900,
}

_PAYER: Final[dict[str, object]] = {
    "first_name": "Saman",
    "last_name": "Perera",
    "email": "saman@example.com",
    "phone": "+94771234567",
    "address": "No. 1, Galle Road",
    "city": "Colombo",
    "country": "Sri Lanka",
}
CHECKOUT: Final[dict[str, object]] = {
    "type": "payment",
    "order_id": "Order12350",
    "items": "Door bell",
    "currency": "LKR",
    "amount": 1000.0,
    "customer": _PAYER,
    "delivery": {"address": "No. 1, Galle Road", "city": "Colombo", "country": "Sri Lanka"},
    "itemList": [{"name": "Door bell", "number": "b-1", "quantity": 1, "unit_amount": 1000.0}],
}
APPROVAL: Final[dict[str, object]] = {
    "type": "preapproval",
    "order_id": "Card12351",
    "items": "Card for later rides",
    "currency": "LKR",
    "customer": _PAYER,
    "customer_reference": "user-17",
}
PLAN: Final[dict[str, object]] = {
    "type": "recurring",
    "order_id": "Plan12352",
    "items": "Books, monthly",
    "currency": "LKR",
    "amount": 500,
    "recurrence": "1 Month",
    "duration": "1 Year",
    "startup_fee": 100,
    "customer": _PAYER,
}
HOTEL_AUTHORIZATION: Final[dict[str, object]] = {
    "type": "authorization",
    "order_id": "Room12353",
    "items": "Hotel room 4",
    "currency": "LKR",
    "amount": 15000,
    "customer": _PAYER,
    "expires_in_s": 900,
}

ENDPOINT: Final[dict[str, object]] = {
    "url": "https://shop.example/events",
    "types": ["operation.*", "checkout.completed"],
    "label": "orders",
}

IMPORTED_CUSTOMER: Final[dict[str, object]] = {
    "customer_token": _CARD,
    "reference": "user-17",
    "label": "Saman's blue card",
    "method": "VISA",
    "card_no_masked": "************1292",
    "card_expiry": "0129",
}

REQUESTS: Final[dict[str, dict[str, tuple[str, dict[str, object]]]]] = {
    "charge": {
        "payment": ("Charge the amount now", CHARGE),
        "authorization": ("Authorize it for a later capture", AUTHORIZATION),
    },
    "capture": {"part": ("Capture a part of the authorized amount", CAPTURE)},
    "refund": {
        "whole": ("Refund all that is left of the payment", REFUND),
        "part": ("Refund a part", REFUND_PART),
        "void": ("Void an authorization", VOID),
    },
    "acknowledgeRecovery": {"recovery": ("Say that all was repeated", {"incarnation": 2})},
    "issueClientToken": {
        "order": ("To pay one order", CLIENT_TOKEN),
        "read": ("To read one order only", {"order_id": "DemoOrder1"}),
    },
    "createEndpoint": {
        "all": ("Get all events", {"url": "https://shop.example/events"}),
        "some": ("Get events of operations and completed checkouts", ENDPOINT),
    },
    "changeEndpoint": {
        "pause": ("Pause: events wait", {"state": "paused"}),
        "start": ("Start: events are sent", {"state": "active"}),
    },
    "replayEvents": {
        "span": ("All events of a day", {"since": "2026-11-20T00:00:00Z", "until": "2026-11-21T00:00:00Z"}),
        "one": ("One event", {"ids": ["evt_019c8b2f5a7e4d10b6f3a92c7e08d154"]}),
    },
    "importCustomer": {
        "token": ("Import a token that you have, with its card", IMPORTED_CUSTOMER),
        "bare": ("The token alone", {"customer_token": _CARD}),
    },
    "changeCustomer": {
        "label": ("Another label", {"label": "Saman's blue card"}),
        "nameless": ("Remove your own name for the customer", {"reference": None}),
    },
    "openCheckout": {
        "payment": ("Let a customer pay", CHECKOUT),
        "preapproval": ("Let a customer approve a card, to be charged later", APPROVAL),
        "recurring": ("Let a customer subscribe", PLAN),
        "authorization": ("Let a customer authorize an amount", HOTEL_AUTHORIZATION),
    },
}
"""The examples of each route that has a body, by name, each with a sentence."""

_PERSON: Final[dict[str, object]] = {
    "fist_name": "Saman",
    "last_name": "Perera",
    "email": "saman@example.com",
    "phone": "+94771234567",
    "delivery_details": {"address": "No. 1, Galle Road", "city": "Colombo", "country": "Sri Lanka"},
}
_PAYMENT_METHOD: Final[dict[str, object]] = {
    "method": "VISA",
    "card_customer_name": "S Perera",
    "card_no": "************1292",
}


def _amounts(gross: float, fee: float, net: float) -> dict[str, object]:
    return {
        "currency": "LKR",
        "gross": gross,
        "fee": fee,
        "net": net,
        "exchange_rate": 1.0,
        "exchange_from": "LKR",
        "exchange_to": "LKR",
    }


def _item(name: str, price: float) -> dict[str, object]:
    return {"name": name, "quantity": 1, "currency": "LKR", "unit_price": price, "total_price": price}


_PAYMENT: Final[dict[str, object]] = {
    "payment_id": _PAID,
    "order_id": "DemoOrder1",
    "date": "2026-01-16 16:21:02",
    "description": "Taxi Hire 123",
    "status": "RECEIVED",
    "currency": "LKR",
    "amount": 1000.0,
    "customer": _PERSON,
    "amount_detail": _amounts(1000.0, 33.0, 967.0),
    "payment_method": _PAYMENT_METHOD,
    "items": None,
    "request": {"custom1": None, "custom2": None},
}
_SUBSCRIPTION: Final[dict[str, object]] = {
    "subscription_id": 420075000001,
    "order_id": "DemoSubscription1",
    "date": "2026-01-04 20:24:52",
    "description": "Book reading Subscription",
    "recurring": "Charged every month for 3 years",
    "status": "ACTIVE",
    "amount": 100.0,
    "currency": "LKR",
    "customer": _PERSON,
    "amount_detail": _amounts(200.0, 6.6, 193.4),
    "payment_method": _PAYMENT_METHOD,
    "items": [_item("Book reading Subscription", 100.0), _item("Startup Fee", 100.0)],
}
_NIMALI: Final[dict[str, object]] = {
    **_PERSON,
    "fist_name": "Nimali",
    "last_name": "Silva",
    "email": "nimali@example.com",
    "phone": "+94772345678",
}
_NIMALIS_CARD: Final[dict[str, object]] = {
    "method": "MASTER",
    "card_customer_name": "N Silva",
    "card_no": "************1191",
}
_FAILED_SUBSCRIPTION: Final[dict[str, object]] = {
    **_SUBSCRIPTION,
    "subscription_id": 420075000002,
    "order_id": "DemoSubscription2",
    "description": "Newspaper",
    "recurring": "Charged every month for 1 year",
    "status": "FAILED",
    "amount": 20.0,
    "customer": _NIMALI,
    "amount_detail": _amounts(20.0, 0.66, 19.34),
    "payment_method": _NIMALIS_CARD,
    "items": [_item("Newspaper", 20.0)],
}
_COMPLETED_SUBSCRIPTION: Final[dict[str, object]] = {
    **_FAILED_SUBSCRIPTION,
    "subscription_id": 420075000003,
    "order_id": "DemoSubscription3",
    "description": "Summer course",
    "recurring": "Charged every month for 3 months",
    "status": "COMPLETED",
    "amount": 75.25,
    "amount_detail": _amounts(75.25, 2.48, 72.77),
    "items": [_item("Summer course", 75.25)],
}

_CHECKOUT: Final[dict[str, object]] = {
    "id": "chk_019c8b2f5a7e4d10b6f3a92c7e08d154",
    "kind": "payment",
    "state": "open",
    "reason": None,
    "may_still_be_paid": True,
    "explanation": "The customer has not finished it yet, as far as the service knows.",
    "account": "gateway",
    "order_id": "Order12350",
    "amount": 1000.0,
    "currency": "LKR",
    "customer_reference": None,
    "payment_id": None,
    "subscription_id": None,
    "customer_id": None,
    "created_at": "2026-03-01T08:00:00.000Z",
    "updated_at": "2026-03-01T08:00:00.000Z",
    "expires_at": "2026-03-01T08:30:00.000Z",
}

_CHARGED: Final = "320025000021"
_ORDER: Final[dict[str, object]] = {
    "order_id": "Order12345",
    "account": "gateway",
    "is_certain": True,
    "is_complete": True,
    "balances": [
        {"currency": "LKR", "paid": 345.67, "held": 0.0, "given_back": 0.0, "charged_back": 0.0, "left": 345.67}
    ],
    "payments": [
        {
            "payment_id": _CHARGED,
            "currency": "LKR",
            "paid": 345.67,
            "held": 0.0,
            "held_until": None,
            "given_back": 0.0,
            "charged_back": 0.0,
            "left": 345.67,
            "is_certain": True,
            "figures": [
                {
                    "figure": "paid",
                    "source": "operation",
                    "id": "op_019c8b2f5a7e4d10b6f3a92c7e08d154",
                    "amount": 345.67,
                    "currency": "LKR",
                }
            ],
            "doubts": [],
        }
    ],
    "payments_left_out": 0,
    "doubts": [],
    "operations": [
        {
            "id": "op_019c8b2f5a7e4d10b6f3a92c7e08d154",
            "kind": "charge",
            "state": "succeeded",
            "explanation": "It was done: the gateway answered or shows that it was, or an operator decided so.",
            "is_final": True,
            "account": "gateway",
            "principal": "demo",
            "idempotency_key": None,
            "request_id": "req_5af22480a16661292670ceae",
            "order_id": "Order12345",
            "payment_id": _CHARGED,
            "subscription_id": None,
            "customer_id": None,
            "amount": 345.67,
            "currency": "LKR",
            "created_at": "2026-03-01T08:00:00.000Z",
            "updated_at": "2026-03-01T08:00:00.214Z",
            "send_by": "2026-03-01T08:00:10.000Z",
        }
    ],
    "operations_left_out": 0,
    "checkouts": [],
    "checkouts_left_out": 0,
}

_CLOSED_CHECKOUT: Final = {
    **_CHECKOUT,
    "state": "cancelled",
    "reason": "closed",
    "explanation": (
        "Its page was closed, and leads no customer on any more; who has its form already may still complete it."
    ),
    "updated_at": "2026-03-01T08:05:00.000Z",
}

_SUBSCRIPTION_STATE: Final = {
    "subscription_id": "420075000001",
    "state": "active",
    "explanation": "It goes on.",
    "is_failing": False,
    "order_id": "Order12351",
    "amount": 1000.0,
    "currency": "LKR",
    "installments_paid": 2,
    "next_on": "2026-05-01",
    "last_paid": {"payment_id": "320025023470", "amount": 1000.0, "at": "2026-04-01T06:30:00.000Z"},
    "last_failure": None,
    "as_of": "2026-04-01T06:30:02.114Z",
}

_STORED_CUSTOMER: Final[dict[str, object]] = {
    "id": "cus_019c8b2f5a7e4d10b6f3a92c7e08d154",
    "state": "active",
    "explanation": "The customer can be charged.",
    "version": 1,
    "account": "gateway",
    "principal": "demo",
    "reference": "user-17",
    "label": "Saman's blue card",
    "method": "VISA",
    "card_no_masked": "************1292",
    "card_expiry": "0129",
    "has_holder": False,
    "order_id": None,
    "payment_id": None,
    "created_at": "2026-03-01T08:00:00.000Z",
    "updated_at": "2026-03-01T08:00:00.000Z",
}

_ERASED_CUSTOMER: Final[dict[str, object]] = {
    **_STORED_CUSTOMER,
    "state": "erased",
    "explanation": (
        "The customer's personal data was erased and its key destroyed, and the customer can no longer be charged."
    ),
    "version": 4,
    "reference": None,
    "label": None,
    "method": None,
    "card_no_masked": None,
    "card_expiry": None,
    "has_holder": False,
    "files_cleared": True,
}

ANSWERS: Final[dict[str, tuple[str, object]]] = {
    "payments": ("Payments with order_id:DemoOrder1", [_PAYMENT]),
    "charge": (
        "Automatic payment charged successfully",
        {
            "order_id": "Order12345",
            "items": "Taxi Hire 123",
            "currency": "LKR",
            "amount": 345.67,
            "custom_1": "booking 7",
            "custom_2": None,
            "payment_id": 320025000021,
            "status_code": 2,
            "status_message": "Successfully completed the test tokenized payment.",
            "md5sig": "61A4122DF12CC72D06E9C67DEE6126AA",
            "authorization_token": None,
        },
    ),
    "capture": (
        "Successfully captured payment",
        {
            "status_code": 2,
            "status_message": "Successfully received the VISA payment",
            "payment_id": 320025000012,
            "currency": "LKR",
            "amount": 100.0,
            "captured_amount": 80.0,
            "items": "Toy Car",
            "order_id": "DemoHold1",
            "md5sig": "6196E9091BF90FAF986EDB4C2862F402",
            "custom_1": None,
            "custom_2": None,
        },
    ),
    "refund": ("Successfully processed the refund", 560034000003),
    "subscriptions": (
        "Found 3 subscriptions",
        [_COMPLETED_SUBSCRIPTION, _FAILED_SUBSCRIPTION, _SUBSCRIPTION],
    ),
    "subscription": ("Found subscription", _SUBSCRIPTION),
    "subscription states": ("OK", [_SUBSCRIPTION_STATE]),
    "subscription state": ("OK", _SUBSCRIPTION_STATE),
    "nothing": ("Successfully cancelled the subscription", None),
    "customers": ("OK", [_STORED_CUSTOMER]),
    "customer": ("OK", _STORED_CUSTOMER),
    "erased customer": ("OK", _ERASED_CUSTOMER),
    "checkout": ("OK", _CHECKOUT),
    "closed checkout": ("OK", _CLOSED_CHECKOUT),
    "order": ("OK", _ORDER),
    "opened checkout": (
        "OK",
        {
            **_CHECKOUT,
            "url": "https://pay.example/gateway/checkouts/chk_019c8b2f5a7e4d10b6f3a92c7e08d154/Jw0c…",
            "form": {
                "action": "https://sandbox.payhere.lk/pay/checkout",
                "fields": {"merchant_id": "1211149", "order_id": "Order12350", "hash": "B34BC29666CF02…"},
            },
        },
    ),
}
"""The msg and data of each kind of answer."""
