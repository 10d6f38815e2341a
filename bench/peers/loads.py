"""What is sent to the peers, and what right answers are."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from dataclasses import dataclass
from typing import Any

from harness.check import Answer, Connection

#: how many of many routes are asked for, one after the other
ASKED = 1000
ROUTES = (10, 1_000, 10_000)


@dataclass(frozen=True)
class Load:
    """Requests that are sent round and round; the server is started with so many routes of one kind."""

    group: str
    title: str
    requests: list[bytes]
    status: int
    expected: Any
    routes: int = 0


def order(items: int) -> dict[str, Any]:
    """An order of some 1 KB with 5 items, of 100 KB with 900."""
    customer = {
        "name": "Änne Müller",
        "email": "anne.mueller@example.org",
        "address": {"street": "Lange Straße 17", "city": "Köln", "zip": "50667"},
        "age": 41,
    }
    goods = [
        {"sku": f"SKU-{n:05}", "title": f"A thing of number {n} that somebody may need", "quantity": n % 9 + 1, "price": n + 0.25}
        for n in range(items)
    ]
    note = 'Please ring twice.\nThe "blue" door, behind the yard. Leave it with the neighbours otherwise.'
    return {"customer": customer, "items": goods, "priority": "high", "tags": ["new", "gift"], "note": note}


def invalid() -> dict[str, Any]:
    """Five mistakes."""
    body = order(5)
    body["customer"]["email"] = "nobody"
    body["customer"]["address"]["zip"] = "5066"
    body["items"][1]["quantity"] = 0
    body["items"][3]["sku"] = "x"
    body["note"] = "x" * 501
    return body


def _post(host: str, title: str, body: dict[str, Any], status: int) -> Load:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    head = f"POST /orders HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
    total = sum(item["quantity"] * item["price"] for item in body["items"])
    expected = {"customer": body["customer"]["email"], "items": len(body["items"]), "total": total}
    return Load("orders", title, [head.encode() + text], status, expected if status == 200 else None)


def _token() -> str:
    """HS256, as all peers take it."""
    claims = {"iss": "https://issuer.example", "aud": "api", "sub": "ann", "exp": int(time.time()) + 86_400}
    parts = [json.dumps(part, separators=(",", ":")).encode() for part in ({"alg": "HS256", "typ": "JWT"}, claims)]
    text = b".".join(_base64(part) for part in parts)
    return (text + b"." + _base64(hmac.digest(b"k" * 32, text, hashlib.sha256))).decode()


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _cookies(port: int, host: str) -> str:
    """Those of somebody who has logged in."""
    client = Connection(port)
    client.send(f"GET /login HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    head = client.head()
    client.close()
    found = [line.split(":", 1)[1].split(";")[0].strip() for line in head if line.lower().startswith("set-cookie:")]
    return "; ".join(found)


def groups(host: str, port: int, routes: int) -> list[Load]:
    """The loads for a server that was started with so many routes."""
    if routes:
        step = max(1, routes // ASKED)
        numbers = range(0, routes, step)
        requests = [f"GET /group{n % 100}/item{n}/x{n} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode() for n in numbers]
        return [Load("routes", f"{routes:,} routes", requests, 200, {"route": 0, "id": "x0"}, routes)]
    stack = f"GET /account HTTP/1.1\r\nHost: {host}\r\nOrigin: https://app.example\r\nCookie: {_cookies(port, host)}\r\n"
    stack += f"Authorization: Bearer {_token()}\r\n\r\n"
    return [
        _post(host, "valid, 1 KB", order(5), 200),
        _post(host, "valid, 100 KB", order(900), 200),
        _post(host, "invalid, 1.4 KB", invalid(), 422),
        Load("stack", "CORS, session, token, limit", [stack.encode()], 200, {"session": "ann", "token": "ann"}),
    ]


def wrong(load: Load, answer: Answer) -> str | None:
    """What is not right about an answer."""
    if answer.status != load.status:
        return f"answers {answer.status} instead of {load.status}: {answer.body[:300]!r}"
    if load.expected is not None and json.loads(answer.body) != load.expected:
        return f"answers {answer.body[:300]!r} instead of {load.expected}"
    if load.group == "stack" and answer.headers.get("access-control-allow-origin") != "https://app.example":
        return f"has no CORS headers: {answer.headers}"
    if load.group == "stack" and not any("ratelimit" in name for name in answer.headers):
        return f"does not limit: {answer.headers}"
    return None
