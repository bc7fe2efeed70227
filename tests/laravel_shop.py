"""A shop with laravel-payhere: its published tables, filled, as SQLite, as a MySQL dump and as PostgreSQL's statements.

The columns are those of the package's migrations, from the first ones (tables ``payments`` and ``subscriptions``) to
the last ones, which encrypt what names a card or a payment.
"""

# ruff: noqa: S608 - tables and values are those of this file

import base64
import hmac
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7

APP_KEY: Final = bytes(range(32))
APP_KEY_TEXT: Final = "base64:" + base64.b64encode(APP_KEY).decode()
IV: Final = bytes(16)

PAYMENT_COLUMNS: Final = (
    *("id", "user_id", "order_id", "merchant_id", "payment_id", "refunded", "refund_reason", "authorization_token"),
    *("subscription_id", "payhere_amount", "captured_amount", "payhere_currency", "status_code", "md5sig"),
    *("status_message", "method", "card_holder_name", "card_no", "card_expiry", "recurring", "message_type"),
    *("item_recurrence", "item_duration", "item_rec_status", "item_rec_date_next", "item_rec_install_paid"),
    *("customer_token", "custom_1", "custom_2", "created_at", "updated_at"),
)
SUBSCRIPTION_COLUMNS: Final = (
    *("id", "payhere_subscription_id", "user_id", "order_id", "trial_ends_at", "ends_at", "status"),
    *("created_at", "updated_at"),
)
ENCRYPTED: Final = frozenset(
    {
        *("payment_id", "subscription_id", "md5sig", "authorization_token", "customer_token"),
        *("card_holder_name", "card_expiry", "card_no"),
    }
)
"""The columns that the later versions of the package encrypt."""
FLOATS: Final = frozenset({"payhere_amount", "captured_amount"})
NUMBERS: Final = frozenset({"id", "user_id", "refunded", "item_rec_install_paid"})

Row = Mapping[str, object]


def payment(number: int, **members: object) -> dict[str, object]:
    """Gives a row of the payments: a notification of a payment, but for what is named."""
    row: dict[str, object] = dict.fromkeys(PAYMENT_COLUMNS)
    row |= {
        "id": number,
        "user_id": 7,
        "order_id": str(1_000 + number),
        "merchant_id": "1211149",
        "payment_id": str(320_025_000_000 + number),
        "refunded": 0,
        "payhere_amount": 1250.5,
        "payhere_currency": "LKR",
        "status_code": "2",
        "md5sig": "0" * 32,
        "status_message": "Successfully completed",
        "method": "VISA",
        "card_holder_name": "O'Brien \\ Sons; DROP TABLE",
        "card_no": "************1292",
        "card_expiry": "12/29",
        "recurring": "0",
        "created_at": "2026-10-01 10:00:00",
        "updated_at": "2026-10-01 10:00:00",
    }
    return row | members


def subscription(number: int, **members: object) -> dict[str, object]:
    """Gives a row of the subscriptions, an active one but for what is named."""
    row: dict[str, object] = dict.fromkeys(SUBSCRIPTION_COLUMNS)
    row |= {
        "id": number,
        "user_id": 7,
        "order_id": str(5_000 + number),
        "status": "0",
        "created_at": "2026-10-01 10:00:00",
        "updated_at": "2026-10-02 10:00:00",
    }
    return row | members


def encrypted(row: Row, key: bytes = APP_KEY, *, is_gcm: bool = False) -> dict[str, object]:
    """Gives a row as a later version of the package stores it."""
    return {
        name: sealed(str(value), key, is_gcm=is_gcm) if name in ENCRYPTED and value is not None else value
        for name, value in row.items()
    }


def sealed(text: str, key: bytes = APP_KEY, *, is_gcm: bool = False) -> str:
    """Encrypts a text as Laravel does: AES in CBC mode with a MAC, or AES-GCM."""
    if is_gcm:
        iv = IV[:12]
        whole = AESGCM(key).encrypt(iv, text.encode(), None)
        parts = {"iv": iv, "value": whole[:-16], "tag": whole[-16:]}
        envelope = {name: base64.b64encode(part).decode() for name, part in parts.items()} | {"mac": ""}
    else:
        padder = PKCS7(128).padder()
        padded = padder.update(text.encode()) + padder.finalize()
        encryptor = Cipher(AES(key), CBC(IV)).encryptor()
        value = base64.b64encode(encryptor.update(padded) + encryptor.finalize()).decode()
        iv_text = base64.b64encode(IV).decode()
        mac = hmac.digest(key, (iv_text + value).encode(), "sha256").hex()
        envelope = {"iv": iv_text, "value": value, "mac": mac, "tag": ""}
    return base64.b64encode(json.dumps(envelope, separators=(",", ":")).encode()).decode()


def write_sqlite(path: Path, payments: Sequence[Row], subscriptions: Sequence[Row] = ()) -> None:
    """Writes the tables into an SQLite file, beside another one that has nothing to do with them."""
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE users (id integer primary key, email varchar)")
        for table, columns, rows in _tables(payments, subscriptions):
            declared = ", ".join(f'"{name}" {_kind(name)}' for name in columns)
            connection.execute(f'CREATE TABLE "{table}" ({declared})')
            marks = ", ".join("?" * len(columns))
            connection.executemany(
                f'INSERT INTO "{table}" VALUES ({marks})', [[row[name] for name in columns] for row in rows]
            )
    connection.close()


def mysql_dump(payments: Sequence[Row], subscriptions: Sequence[Row] = (), *, rows_at_once: int = 100) -> str:
    """Writes the tables as mysqldump does, with its comments and its statements for other versions."""
    parts = [
        "-- MySQL dump 10.13  Distrib 8.0.36, for Linux (x86_64)\n--\n-- Host: localhost    Database: shop\n",
        "/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;\n",
        "/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;\n",
        "DROP TABLE IF EXISTS `users`;\nCREATE TABLE `users` (\n  `id` bigint unsigned NOT NULL,\n  `note` text\n);\n",
        "INSERT INTO `users` VALUES (1,'INSERT INTO `payhere_payments` VALUES (1);\\n'),(2,'it''s; \\'); --');\n",
    ]
    for table, columns, rows in _tables(payments, subscriptions):
        declared = ",\n".join(f"  `{name}` {_mysql_kind(name)}" for name in columns)
        parts.append(f"--\n-- Table structure for table `{table}`\n--\n\nDROP TABLE IF EXISTS `{table}`;\n")
        parts.append(f"CREATE TABLE `{table}` (\n{declared},\n  PRIMARY KEY (`id`),\n  KEY `o` (`order_id`)\n) ")
        parts.append("ENGINE=InnoDB AUTO_INCREMENT=9 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;\n")
        parts.append(f"LOCK TABLES `{table}` WRITE;\n/*!40000 ALTER TABLE `{table}` DISABLE KEYS */;\n")
        for at in range(0, len(rows), rows_at_once):
            values = ",".join(_mysql_row(row, columns) for row in rows[at : at + rows_at_once])
            parts.append(f"INSERT INTO `{table}` VALUES {values};\n")
        parts.append(f"/*!40000 ALTER TABLE `{table}` ENABLE KEYS */;\nUNLOCK TABLES;\n")
    return "".join(parts) + "-- Dump completed on 2026-11-25 10:00:00\n"


def postgresql_statements(payments: Sequence[Row], subscriptions: Sequence[Row] = ()) -> Iterable[str]:
    """Gives the statements that make and fill the tables in PostgreSQL."""
    kinds = {**dict.fromkeys(FLOATS, "double precision"), **dict.fromkeys(NUMBERS, "bigint"), "refunded": "boolean"}
    for table, columns, rows in _tables(payments, subscriptions):
        declared = ", ".join(f'"{name}" {kinds.get(name, "text")}' for name in columns)
        yield f'CREATE TABLE "{table}" ({declared})'
        for row in rows:
            values = ", ".join(_postgresql_value(name, row[name]) for name in columns)
            yield f'INSERT INTO "{table}" VALUES ({values})'


def _tables(payments: Sequence[Row], subscriptions: Sequence[Row]) -> list[tuple[str, tuple[str, ...], Sequence[Row]]]:
    return [
        ("payhere_payments", PAYMENT_COLUMNS, payments),
        ("payhere_subscriptions", SUBSCRIPTION_COLUMNS, subscriptions),
    ]


def _kind(name: str) -> str:
    return "float" if name in FLOATS else "integer" if name in NUMBERS else "varchar"


def _mysql_kind(name: str) -> str:
    if name == "status_code":
        return "enum('3','2','0','-1','-2','-3') COLLATE utf8mb4_unicode_ci NOT NULL"
    if name == "refunded":
        return "tinyint(1) NOT NULL DEFAULT '0'"
    return "double DEFAULT NULL" if name in FLOATS else "varchar(255) COLLATE utf8mb4_unicode_ci DEFAULT NULL"


def _mysql_row(row: Row, columns: Sequence[str]) -> str:
    return "(" + ",".join(_mysql_value(row[name]) for name in columns) + ")"


def _mysql_value(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, int | float):
        return str(value)
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def _postgresql_value(name: str, value: object) -> str:
    if value is None:
        return "NULL"
    if name == "refunded":
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"
