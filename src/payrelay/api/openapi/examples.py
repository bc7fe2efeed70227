"""Examples of bodies and answers for the docs page; the service accepts every body among them unchanged."""

from typing import Final

CHARGE: Final[dict[str, object]] = {
    "type": "PAYMENT",
    "order_id": "Order12345",
    "items": "Taxi Hire 123",
    "currency": "LKR",
    "amount": 345.67,
    "customer_token": "59AFEE022CC69CA39D325E1B59130862",
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
    "customer_token": "59AFEE022CC69CA39D325E1B59130862",
}
CAPTURE: Final[dict[str, object]] = {
    "authorization_token": "e34f3059-7b7d-4b62-a57c-784beaa169f4",
    "amount": 80.0,
    "deduction_details": "Item 1 is out of stock",
}
REFUND: Final[dict[str, object]] = {"payment_id": "320025021815", "description": "Item is out of stock"}
REFUND_PART: Final[dict[str, object]] = {**REFUND, "amount": "100.50"}
VOID: Final[dict[str, object]] = {
    "authorization_token": "74d7f304-7f9d-481d-b47f-6c9cad32d3d5",
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
    "customer_token": "59AFEE022CC69CA39D325E1B59130862",
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
        "whole": ("Refund the whole payment", REFUND),
        "part": ("Refund a part", REFUND_PART),
        "void": ("Void an authorization", VOID),
    },
    "acknowledgeRecovery": {"recovery": ("Say that all was repeated", {"incarnation": 2})},
    "issueClientToken": {
        "order": ("To pay one order", CLIENT_TOKEN),
        "read": ("To read only", {"customer_id": "cus_019c8b2f5a7e4d10b6f3a92c7e08d154"}),
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
        "bare": ("The token alone", {"customer_token": "59AFEE022CC69CA39D325E1B59130862"}),
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

_CUSTOMER: Final[dict[str, object]] = {
    "fist_name": "Saman",
    "last_name": "Perera",
    "email": "saman@example.com",
    "phone": "+94771234567",
    "delivery_details": {"address": "N0.1, Galle Road", "city": "Colombo", "country": "Sri Lanka"},
}
_AMOUNT_DETAIL: Final[dict[str, object]] = {
    "currency": "LKR",
    "gross": 500,
    "fee": 14.5,
    "net": 485.5,
    "exchange_rate": 1,
    "exchange_from": "LKR",
    "exchange_to": "LKR",
}
_PAYMENT_METHOD: Final[dict[str, object]] = {
    "method": "VISA",
    "card_customer_name": "S Perera",
    "card_no": "************1234",
}
_PAYMENT: Final[dict[str, object]] = {
    "payment_id": 320025021815,
    "order_id": "Order12345",
    "date": "2026-01-16 16:21:02",
    "description": "Taxi Hire 123",
    "status": "RECEIVED",
    "currency": "LKR",
    "amount": 500,
    "customer": _CUSTOMER,
    "amount_detail": _AMOUNT_DETAIL,
    "payment_method": _PAYMENT_METHOD,
    "items": None,
}
_SUBSCRIPTION: Final[dict[str, object]] = {
    "subscription_id": 420075032251,
    "order_id": "Order0003",
    "date": "2026-01-04 20:24:52",
    "description": "Book reading subscription",
    "recurring": "Charged every month for 3 years",
    "status": "ACTIVE",
    "amount": 500,
    "currency": "LKR",
    "customer": _CUSTOMER,
    "amount_detail": _AMOUNT_DETAIL,
    "payment_method": _PAYMENT_METHOD,
    "items": [
        {"name": "Books", "quantity": 1, "currency": "LKR", "unit_price": 500, "total_price": 500},
    ],
}

_CHECKOUT: Final[dict[str, object]] = {
    "id": "chk_019c8b2f5a7e4d10b6f3a92c7e08d154",
    "kind": "payment",
    "state": "open",
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

_SUBSCRIPTION_STATE: Final = {
    "subscription_id": "420075032251",
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
    "principal": "shop",
    "reference": "user-17",
    "label": None,
    "method": "VISA",
    "card_no_masked": "************1292",
    "card_expiry": "0129",
    "has_holder": True,
    "order_id": "Card12351",
    "payment_id": "320025000001",
    "created_at": "2026-03-01T08:00:00.000Z",
    "updated_at": "2026-03-01T08:00:00.000Z",
}

_ERASED_CUSTOMER: Final[dict[str, object]] = {
    **_STORED_CUSTOMER,
    "state": "erased",
    "explanation": (
        "The customer's personal data was erased and its key destroyed, and the customer can no longer be charged."
    ),
    "version": 2,
    "reference": None,
    "method": None,
    "card_no_masked": None,
    "card_expiry": None,
    "has_holder": False,
    "files_cleared": True,
}

ANSWERS: Final[dict[str, tuple[str, object]]] = {
    "payments": ("Payments with order_id:Order12345", [_PAYMENT]),
    "charge": (
        "Automatic payment charged successfully",
        {
            "order_id": "Order12345",
            "items": "Taxi Hire 123",
            "currency": "LKR",
            "amount": 345.67,
            "custom_1": "booking 7",
            "custom_2": None,
            "payment_id": 320025021815,
            "status_code": 2,
            "status_message": "Successfully completed the payment.",
            "md5sig": "A098FEBCC06293734641770555B4D569",
            "authorization_token": None,
        },
    ),
    "capture": (
        "Successfully captured payment",
        {
            "status_code": 2,
            "status_message": "Successfully received the VISA payment",
            "payment_id": 320025527952,
            "currency": "LKR",
            "amount": 100.0,
            "captured_amount": 80.0,
            "items": "Hotel room 4",
            "order_id": "Order12346",
            "md5sig": "27EE69A66E761D20429984A0CB0AFC27",
            "custom_1": None,
            "custom_2": None,
        },
    ),
    "refund": ("Successfully processed the refund", 560034010257),
    "subscriptions": ("Found 1 subscriptions", [_SUBSCRIPTION]),
    "subscription": ("Found subscription", _SUBSCRIPTION),
    "subscription states": ("OK", [_SUBSCRIPTION_STATE]),
    "subscription state": ("OK", _SUBSCRIPTION_STATE),
    "nothing": ("Successfully cancelled the subscription", None),
    "customers": ("OK", [_STORED_CUSTOMER]),
    "customer": ("OK", _STORED_CUSTOMER),
    "erased customer": ("OK", _ERASED_CUSTOMER),
    "checkout": ("OK", _CHECKOUT),
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
