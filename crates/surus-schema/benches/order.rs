//! What validation costs: `cargo bench -p surus-schema`. A nested body of 1 KB and one of 100 KB, valid and not.

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{json, Value};
use surus_schema::{Media, Schema};

fn schema() -> Schema {
    let text =
        |min: usize, max: usize| json!({"type": "string", "minLength": min, "maxLength": max});
    let field = |name: &str, kind: Value| json!({"name": name, "type": kind, "required": true});
    let class = |title: &str, fields: Vec<Value>| json!({"kind": "object", "title": title, "properties": fields});
    let classes = [
        class(
            "Order",
            vec![
                field("customer", json!({"type": "object", "class": 1})),
                field(
                    "items",
                    json!({"type": "list", "items": {"type": "object", "class": 3}, "minItems": 1, "maxItems": 2000}),
                ),
                field("priority", json!({"type": "enum", "class": 4})),
                field(
                    "tags",
                    json!({"type": "list", "items": text(0, 20), "maxItems": 10}),
                ),
                field("note", text(0, 500)),
            ],
        ),
        class(
            "Customer",
            vec![
                field("name", text(1, 50)),
                field("email", json!({"type": "string", "format": "email"})),
                field("address", json!({"type": "object", "class": 2})),
                field("age", json!({"type": "integer", "nullable": true})),
            ],
        ),
        class(
            "Address",
            vec![
                field("street", text(1, 100)),
                field("city", text(1, 50)),
                field("zip", json!({"type": "string", "pattern": "^[0-9]{5}$"})),
            ],
        ),
        class(
            "Item",
            vec![
                field("sku", text(3, 20)),
                field("title", text(1, 100)),
                field(
                    "quantity",
                    json!({"type": "integer", "minimum": 1, "maximum": 1000}),
                ),
                field("price", json!({"type": "number", "minimum": 0})),
            ],
        ),
        json!({"kind": "enum", "title": "Priority", "values": ["low", "normal", "high"]}),
    ];
    Schema::compile(&json!({"root": 0, "classes": classes}).to_string()).expect("a schema")
}

fn body(items: usize) -> Bytes {
    let items: Vec<Value> = (0..items)
        .map(|n| json!({"sku": format!("SKU-{n:05}"), "title": format!("A thing of number {n} that somebody may need"),
            "quantity": n % 9 + 1, "price": n as f64 + 0.25}))
        .collect();
    let address = json!({"street": "Lange Straße 17", "city": "Köln", "zip": "50667"});
    let customer = json!({"name": "Änne Müller", "email": "anne.mueller@example.org", "address": address, "age": 41});
    let note = "Please ring twice.\nThe \"blue\" door, behind the yard. Leave it with the neighbours otherwise.";
    json!({"customer": customer, "items": items, "priority": "high", "tags": ["new", "gift"], "note": note})
        .to_string()
        .into()
}

fn measure(name: &str, schema: &Schema, body: &Bytes) {
    let mut best = Duration::MAX;
    let rounds = 2_000_000 / body.len();
    for _ in 0..10 {
        let begun = Instant::now();
        for _ in 0..rounds {
            let _ = black_box(schema.read(&Media::Json, black_box(body.clone())));
        }
        best = best.min(begun.elapsed() / u32::try_from(rounds).unwrap_or(1));
    }
    println!(
        "{name}: {} bytes, {:.2} µs",
        body.len(),
        best.as_secs_f64() * 1e6
    );
}

fn main() {
    let schema = schema();
    for items in [5, 900] {
        let valid = body(items);
        assert!(schema.read(&Media::Json, valid.clone()).is_ok());
        measure("valid", &schema, &valid);
        let invalid = String::from_utf8_lossy(&valid).replace('@', "");
        measure("invalid", &schema, &invalid.into());
    }
}
