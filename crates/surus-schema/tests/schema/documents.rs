//! What clients read about a schema.

use serde_json::json;

use crate::support::schema_with;

#[test]
fn json_schema() {
    let others = json!([{"kind": "enum", "title": "Role", "values": ["a", "b"]}]);
    let properties = json!([
        {"name": "name", "type": {"type": "string", "minLength": 1, "format": "email"}, "description": "who", "example": "a@b.co"},
        {"name": "age", "type": {"type": "integer", "minimum": 0, "nullable": true}, "required": false, "default": 3},
        {"name": "role", "type": {"type": "enum", "class": 1, "nullable": true}, "deprecated": true},
        {"name": "list", "type": {"type": "list", "items": {"type": "object", "class": 0}, "unique": true}},
        {"name": "any", "type": {"type": "mixed", "nullable": true}},
        {"name": "two", "type": {"type": "union", "any": [{"type": "number"}, {"type": "map", "items": {"type": "boolean"}}], "nullable": true}},
    ]);
    let schema = schema_with(
        json!({"properties": properties, "strict": true, "description": "A thing."}),
        others,
    );
    let thing = json!({
        "description": "A thing.",
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "format": "email", "description": "who", "examples": ["a@b.co"]},
            "age": {"type": ["integer", "null"], "minimum": 0, "default": 3},
            "role": {"anyOf": [{"$ref": "#/$defs/Role"}, {"type": "null"}], "deprecated": true},
            "list": {"type": "array", "items": {"$ref": "#/$defs/Thing"}, "uniqueItems": true},
            "any": {},
            "two": {"anyOf": [{"type": "number"}, {"type": "object", "additionalProperties": {"type": "boolean"}}, {"type": "null"}]},
        },
        "required": ["name", "role", "list", "any", "two"],
        "additionalProperties": false,
    });
    assert_eq!(
        schema.json_schema(),
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$ref": "#/$defs/Thing",
            "$defs": {"Thing": thing, "Role": {"type": "string", "enum": ["a", "b"]}},
        })
    );
}
