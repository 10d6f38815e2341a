"""As in ../surus/app.php."""

import os
from enum import Enum
from typing import Annotated

import jwt
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from slowapi import Limiter
from slowapi.util import get_remote_address
from starlette.middleware.sessions import SessionMiddleware
from pydantic import BaseModel, ConfigDict, EmailStr, Field, StringConstraints


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)


class Address(Strict):
    street: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    city: Annotated[str, StringConstraints(min_length=1, max_length=50)]
    zip: Annotated[str, StringConstraints(pattern="^[0-9]{5}$")]


class Customer(Strict):
    name: Annotated[str, StringConstraints(min_length=1, max_length=50)]
    email: EmailStr
    address: Address
    age: int | None = None


class Item(Strict):
    sku: Annotated[str, StringConstraints(min_length=3, max_length=20)]
    title: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    quantity: Annotated[int, Field(ge=1, le=1000)]
    price: Annotated[float, Field(ge=0)]


class Priority(str, Enum):
    low = "low"
    normal = "normal"
    high = "high"


class Order(BaseModel):
    customer: Customer
    items: Annotated[list[Item], Field(min_length=1, max_length=2000)]
    priority: Priority = Priority.normal
    tags: Annotated[list[Annotated[str, StringConstraints(max_length=20)]], Field(max_length=10)] = []
    note: Annotated[str, StringConstraints(max_length=500)] | None = None


class Total(BaseModel):
    customer: str
    items: int
    total: float


app = FastAPI()


@app.post("/orders")
async def orders(order: Order) -> Total:
    total = sum(item.quantity * item.price for item in order.items)
    return Total(customer=order.customer.email, items=len(order.items), total=total)


# Its middleware is for all of an application: this one is mounted beside, for the paths that want it.
stack = FastAPI()
stack.add_middleware(CORSMiddleware, allow_origins=["https://app.example"], allow_credentials=True)
stack.add_middleware(SessionMiddleware, secret_key="s" * 32)
limiter = Limiter(key_func=get_remote_address, headers_enabled=True)
stack.state.limiter = limiter
bearer = HTTPBearer()


def claims(credentials: Annotated[HTTPAuthorizationCredentials, Depends(bearer)]) -> dict:
    try:
        return jwt.decode(
            credentials.credentials, "k" * 32, algorithms=["HS256"], audience="api", issuer="https://issuer.example"
        )
    except jwt.InvalidTokenError as error:
        raise HTTPException(401) from error


@stack.get("/login")
async def login(request: Request) -> dict[str, bool]:
    request.session["user"] = "ann"
    return {"in": True}


@stack.get("/account")
@limiter.limit("1000000000/minute")
async def account(request: Request, response: Response, token: Annotated[dict, Depends(claims)]) -> dict[str, str]:
    return {"session": request.session["user"], "token": token["sub"]}


def route(number: int) -> None:
    """One of many."""

    @app.get(f"/group{number % 100}/item{number}/{{id}}")
    async def found(id: str) -> dict[str, int | str]:
        return {"route": number, "id": id}


for number in range(int(os.environ.get("ROUTES", "0"))):
    route(number)
app.mount("/", stack)
