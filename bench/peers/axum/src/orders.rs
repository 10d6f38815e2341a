//! Validated JSON, with serde and validator.

use std::sync::LazyLock;

use axum::{body::Bytes, http::StatusCode, Json};
use regex::Regex;
use serde::{Deserialize, Serialize};
use validator::{Validate, ValidationError};

static ZIP: LazyLock<Regex> = LazyLock::new(|| Regex::new("^[0-9]{5}$").expect("a pattern"));

#[derive(Deserialize, Validate)]
struct Address {
    #[validate(length(min = 1, max = 100))]
    street: String,
    #[validate(length(min = 1, max = 50))]
    city: String,
    #[validate(regex(path = *ZIP))]
    zip: String,
}

#[derive(Deserialize, Validate)]
struct Customer {
    #[validate(length(min = 1, max = 50))]
    name: String,
    #[validate(email)]
    email: String,
    #[validate(nested)]
    address: Address,
    #[allow(dead_code)]
    age: Option<i64>,
}

// Serialize: validator's errors hold the values that they are about.
#[derive(Deserialize, Serialize, Validate)]
struct Item {
    #[validate(length(min = 3, max = 20))]
    sku: String,
    #[validate(length(min = 1, max = 100))]
    title: String,
    #[validate(range(min = 1, max = 1000))]
    quantity: i64,
    #[validate(range(min = 0.0))]
    price: f64,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "lowercase")]
enum Priority {
    Low,
    #[default]
    Normal,
    High,
}

#[derive(Deserialize, Validate)]
struct Order {
    #[validate(nested)]
    customer: Customer,
    #[validate(length(min = 1, max = 2000), nested)]
    items: Vec<Item>,
    #[serde(default)]
    #[allow(dead_code)]
    priority: Priority,
    #[serde(default)]
    #[validate(length(max = 10), custom(function = "short"))]
    tags: Vec<String>,
    #[validate(length(max = 500))]
    note: Option<String>,
}

fn short(tags: &[String]) -> Result<(), ValidationError> {
    if tags.iter().all(|tag| tag.chars().count() <= 20) {
        Ok(())
    } else {
        Err(ValidationError::new("length"))
    }
}

#[derive(Serialize)]
pub struct Total {
    customer: String,
    items: usize,
    total: f64,
}

pub async fn orders(body: Bytes) -> Result<Json<Total>, (StatusCode, String)> {
    let invalid = |text: String| (StatusCode::UNPROCESSABLE_ENTITY, text);
    let order: Order = serde_json::from_slice(&body).map_err(|error| invalid(error.to_string()))?;
    order
        .validate()
        .map_err(|errors| invalid(serde_json::to_string(&errors).unwrap_or_default()))?;
    let total = order
        .items
        .iter()
        .map(|item| item.quantity as f64 * item.price)
        .sum();
    Ok(Json(Total {
        customer: order.customer.email,
        items: order.items.len(),
        total,
    }))
}
