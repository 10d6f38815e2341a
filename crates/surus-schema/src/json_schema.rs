//! Writes descriptions as JSON Schema 2020-12.

use serde_json::{json, Map, Value};

use crate::description::{Class, ClassKind, Description, Property, Range, Shape, Type};
use crate::schema::Schema;

impl Schema {
    /// The schema as a document of its own.
    #[must_use]
    pub fn json_schema(&self) -> Value {
        let writer = Writer {
            description: &self.description,
            at: "#/$defs/",
        };
        let mut document = Map::new();
        document.insert(
            "$schema".into(),
            "https://json-schema.org/draft/2020-12/schema".into(),
        );
        document.insert("$ref".into(), writer.reference(self.description.root));
        let definitions = writer.definitions().into_iter().collect();
        document.insert("$defs".into(), Value::Object(definitions));
        Value::Object(document)
    }
}

/// Writes the schemas of one description; `at` is the place of named schemas in the document.
pub(crate) struct Writer<'a> {
    pub(crate) description: &'a Description,
    pub(crate) at: &'static str,
}

impl Writer<'_> {
    fn class(&self, index: u16) -> Option<&Class> {
        self.description.classes.get(usize::from(index))
    }

    pub(crate) fn reference(&self, class: u16) -> Value {
        let title = self.class(class).map_or("", |class| class.title.as_str());
        format!("{}{title}", self.at).into()
    }

    /// Schemas by name; classes for dates and files, which are just a format of text, have none.
    pub(crate) fn definitions(&self) -> Vec<(String, Value)> {
        let classes = self.description.classes.iter();
        classes
            .filter_map(|class| Some((class.title.clone(), self.definition(class)?)))
            .collect()
    }

    fn definition(&self, class: &Class) -> Option<Value> {
        let mut schema = Map::new();
        if let Some(text) = &class.description {
            schema.insert("description".into(), text.as_str().into());
        }
        match &class.kind {
            ClassKind::Date | ClassKind::File => return None,
            ClassKind::Enum { values } => {
                let kind = if values.iter().all(Value::is_string) {
                    "string"
                } else {
                    "integer"
                };
                schema.insert("type".into(), kind.into());
                schema.insert("enum".into(), values.clone().into());
            }
            ClassKind::Object {
                properties,
                strict,
                example,
            } => {
                schema.insert("type".into(), "object".into());
                let all: Map<String, Value> = properties
                    .iter()
                    .map(|property| (property.name.clone(), self.property(property)))
                    .collect();
                schema.insert("properties".into(), Value::Object(all));
                let required: Vec<&str> = properties
                    .iter()
                    .filter(|property| property.required)
                    .map(|property| property.name.as_str())
                    .collect();
                if !required.is_empty() {
                    schema.insert("required".into(), json!(required));
                }
                if *strict {
                    schema.insert("additionalProperties".into(), false.into());
                }
                if let Some(example) = example {
                    schema.insert("examples".into(), json!([example]));
                }
            }
        }
        Some(Value::Object(schema))
    }

    pub(crate) fn property(&self, property: &Property) -> Value {
        let mut schema = self.kind(&property.kind);
        if let Some(text) = &property.description {
            schema.insert("description".into(), text.as_str().into());
        }
        if let Some(default) = &property.default {
            schema.insert("default".into(), default.clone());
        }
        if let Some(example) = &property.example {
            schema.insert("examples".into(), json!([example]));
        }
        if property.deprecated {
            schema.insert("deprecated".into(), true.into());
        }
        Value::Object(schema)
    }

    pub(crate) fn kind(&self, kind: &Type) -> Map<String, Value> {
        let mut schema = self.shape(&kind.shape);
        if kind.nullable && !schema.is_empty() {
            match schema.get_mut("type") {
                Some(name) => *name = json!([name, "null"]),
                None => {
                    let any = match schema.remove("anyOf") {
                        Some(Value::Array(mut any)) => {
                            any.push(json!({"type": "null"}));
                            any
                        }
                        _ => vec![Value::Object(schema), json!({"type": "null"})],
                    };
                    schema = Map::new();
                    schema.insert("anyOf".into(), any.into());
                }
            }
        }
        schema
    }

    fn shape(&self, shape: &Shape) -> Map<String, Value> {
        let mut schema = Map::new();
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                schema.insert(name.to_owned(), value);
            }
        };
        match shape {
            Shape::Mixed => {}
            Shape::Null => set("type", Some("null".into())),
            Shape::Boolean => set("type", Some("boolean".into())),
            Shape::Integer(range) => {
                set("type", Some("integer".into()));
                set_range(range, &mut set);
            }
            Shape::Number(range) => {
                set("type", Some("number".into()));
                set_range(range, &mut set);
            }
            Shape::String {
                min_length,
                max_length,
                pattern,
                format,
                schemes,
            } => {
                set("type", Some("string".into()));
                set("minLength", min_length.map(Value::from));
                set("maxLength", max_length.map(Value::from));
                set("format", format.map(|format| format.name().into()));
                let scheme = (!schemes.is_empty()).then(|| format!("^({})://", schemes.join("|")));
                set("pattern", pattern.clone().or(scheme).map(Value::from));
            }
            Shape::Date { format, .. } => {
                set("type", Some("string".into()));
                set("format", Some(format.name().into()));
            }
            Shape::File {
                min_bytes,
                max_bytes,
                ..
            } => {
                set("type", Some("string".into()));
                set("format", Some("binary".into()));
                set("minLength", min_bytes.map(Value::from));
                set("maxLength", max_bytes.map(Value::from));
            }
            Shape::Enum { class } | Shape::Object { class } => {
                set("$ref", Some(self.reference(*class)));
            }
            Shape::List {
                items,
                min_items,
                max_items,
                unique,
            } => {
                set("type", Some("array".into()));
                set("items", Some(Value::Object(self.kind(items))));
                set("minItems", min_items.map(Value::from));
                set("maxItems", max_items.map(Value::from));
                set("uniqueItems", unique.then_some(true.into()));
            }
            Shape::Map {
                items,
                min_items,
                max_items,
            } => {
                set("type", Some("object".into()));
                let items = Value::Object(self.kind(items));
                set("additionalProperties", Some(items));
                set("minProperties", min_items.map(Value::from));
                set("maxProperties", max_items.map(Value::from));
            }
            Shape::Union { any } => {
                let any = any.iter().map(|each| Value::Object(self.kind(each)));
                set("anyOf", Some(any.collect()));
            }
        }
        schema
    }
}

fn set_range(range: &Range, set: &mut impl FnMut(&str, Option<Value>)) {
    set("minimum", range.minimum.map(plain));
    set("maximum", range.maximum.map(plain));
    set("exclusiveMinimum", range.exclusive_minimum.map(plain));
    set("exclusiveMaximum", range.exclusive_maximum.map(plain));
    set("multipleOf", range.multiple_of.map(plain));
}

/// Writes 3, not 3.0: most bounds of numbers are integers.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn plain(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        (number as i64).into()
    } else {
        number.into()
    }
}
