//! What the tests share.

use bytes::Bytes;
use serde_json::{json, Map, Value};
use surus_schema::{Cell, Input, Kind, Media, Rejected, Schema};

/// A schema of one class with these properties, all required unless they have `"required": false`.
pub(crate) fn schema(properties: Value) -> Schema {
    schema_with(json!({"properties": properties}), json!([]))
}

/// The same with more of the class, and other classes behind it (from index 1).
pub(crate) fn schema_with(mut class: Value, others: Value) -> Schema {
    class["kind"] = "object".into();
    class["title"] = "Thing".into();
    for property in class["properties"].as_array_mut().unwrap() {
        if property.get("required").is_none() {
            property["required"] = true.into();
        }
    }
    let mut classes = vec![class];
    classes.extend(others.as_array().unwrap().iter().cloned());
    Schema::compile(&json!({"root": 0, "classes": classes}).to_string()).unwrap()
}

/// One property called `v` of this type.
pub(crate) fn one(kind: Value) -> Schema {
    schema(json!([{"name": "v", "type": kind}]))
}

pub(crate) fn read(schema: &Schema, text: &str) -> Result<Value, Rejected> {
    read_as(schema, &Media::Json, text.as_bytes())
}

pub(crate) fn read_as(schema: &Schema, media: &Media, body: &[u8]) -> Result<Value, Rejected> {
    let input = schema.read(media, Bytes::copy_from_slice(body))?;
    let mut at = 0;
    let value = value(&input, &mut at);
    assert_eq!(at, input.cells().len(), "all cells belong to the value");
    Ok(value)
}

/// Of the property `v`: its value, or the rules it breaks with their pointers.
pub(crate) fn v(schema: &Schema, value: &str) -> Result<Value, Vec<String>> {
    match read(schema, &format!("{{\"v\":{value}}}")) {
        Ok(object) => Ok(object["0"].clone()),
        Err(rejected) => Err(rules(rejected)),
    }
}

/// `rule pointer` of each violation.
pub(crate) fn rules(rejected: Rejected) -> Vec<String> {
    match rejected {
        Rejected::Invalid { violations, .. } => violations
            .into_iter()
            .map(|violation| format!("{} {}", violation.rule, violation.pointer))
            .collect(),
        other => vec![format!("{other:?}")],
    }
}

/// Cells as JSON. Objects have the numbers of their parameters as names; what JSON has not is an object with one name.
fn value(input: &Input, at: &mut usize) -> Value {
    let cell: Cell = input.cells()[*at];
    *at += 1;
    match cell.kind {
        Kind::Null => Value::Null,
        Kind::False => false.into(),
        Kind::True => true.into(),
        Kind::Integer => (cell.bits as i64).into(),
        Kind::Number => f64::from_bits(cell.bits).into(),
        Kind::String => input.text(&cell).into(),
        Kind::File => {
            let start = cell.bits as usize;
            let content = &input.body()[start..start + cell.len as usize];
            let content = String::from_utf8_lossy(content).into_owned();
            json!({"file": [value(input, at), value(input, at), content]})
        }
        Kind::List => (0..cell.len).map(|_| value(input, at)).collect(),
        Kind::Map => {
            let mut members = Map::new();
            for _ in 0..cell.len {
                let key = value(input, at).as_str().unwrap().to_owned();
                let each = value(input, at);
                members.insert(key, each);
            }
            Value::Object(members)
        }
        Kind::Object => {
            let members = (0..cell.len).map(|i| (i.to_string(), value(input, at)));
            Value::Object(members.collect())
        }
        Kind::Enum => json!({"case": cell.bits}),
        Kind::Default => json!({"default": true}),
        Kind::Parsed => json!({"parsed": input.text(&cell)}),
        Kind::Text | Kind::Many => panic!("{:?} is for parsing only", cell.kind),
    }
}

/// Equal but for the last bit of numbers: `serde_json` rounds some of them another way, and has unsigned ones.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= a.abs() * 1e-15
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}
