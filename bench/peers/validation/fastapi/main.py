"""As in ../app.php."""

from enum import Enum
from typing import Annotated

from fastapi import FastAPI
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
