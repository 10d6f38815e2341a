//! What the PHP side says about the classes that input is hydrated to: `Surus\Schema\Describer` writes it as JSON.

use serde::Deserialize;
use serde_json::Value;

/// A class and all that it refers to.
#[derive(Debug, Deserialize)]
pub struct Description {
    /// Index of the class that the input as a whole becomes.
    pub root: u16,
    pub classes: Vec<Class>,
    /// For bodies of this type only; bytes.
    pub max_bytes: Option<usize>,
    /// Levels of nesting.
    pub max_depth: Option<usize>,
}

/// What a type of the kind "object", "enum", "date" or "file" refers to.
#[derive(Debug, Deserialize)]
pub struct Class {
    /// The name in documents, unique among the classes of an application.
    pub title: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(flatten)]
    pub kind: ClassKind,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ClassKind {
    Object {
        /// In the order of the constructor's parameters.
        properties: Vec<Property>,
        /// Refuse what is not declared.
        #[serde(default)]
        strict: bool,
        #[serde(default)]
        example: Option<Value>,
    },
    Enum {
        /// What stands for each case in input, in the order of declaration: all strings, or all integers.
        values: Vec<Value>,
    },
    /// A class whose constructor takes a date as text.
    Date,
    /// The class of uploaded files.
    File,
}

#[derive(Debug, Deserialize)]
pub struct Property {
    /// As it is called in input.
    pub name: String,
    #[serde(rename = "type")]
    pub kind: Type,
    pub required: bool,
    /// For documents; what is hydrated is PHP's own default.
    #[serde(default)]
    pub default: Option<Value>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub example: Option<Value>,
    #[serde(default)]
    pub deprecated: bool,
    /// File, line and parameter, for errors at boot.
    #[serde(default)]
    pub place: String,
}

#[derive(Debug, Default, Deserialize)]
pub struct Type {
    #[serde(flatten)]
    pub shape: Shape,
    #[serde(default)]
    pub nullable: bool,
    /// The application's own message for a rule, by the rule's name.
    #[serde(default)]
    pub messages: std::collections::BTreeMap<String, String>,
}

/// Bounds are inclusive unless they are called exclusive. Lengths are in characters (Unicode scalar values).
#[derive(Debug, Default, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "lowercase",
    rename_all_fields = "camelCase"
)]
pub enum Shape {
    #[default]
    Mixed,
    Null,
    Boolean,
    Integer(Range),
    Number(Range),
    String {
        min_length: Option<usize>,
        max_length: Option<usize>,
        /// A regular expression, not anchored.
        pattern: Option<String>,
        format: Option<Format>,
        /// Of URLs.
        #[serde(default)]
        schemes: Vec<String>,
    },
    Enum {
        class: u16,
    },
    Date {
        class: u16,
        format: Format,
    },
    Object {
        class: u16,
    },
    File {
        class: u16,
        min_bytes: Option<usize>,
        max_bytes: Option<usize>,
    },
    List {
        items: Box<Type>,
        min_items: Option<usize>,
        max_items: Option<usize>,
        #[serde(default)]
        unique: bool,
    },
    Map {
        items: Box<Type>,
        min_items: Option<usize>,
        max_items: Option<usize>,
    },
    Union {
        any: Vec<Type>,
    },
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Range {
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub exclusive_minimum: Option<f64>,
    pub exclusive_maximum: Option<f64>,
    pub multiple_of: Option<f64>,
}

/// As JSON Schema calls them.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    Email,
    Uuid,
    Uri,
    Date,
    DateTime,
    Time,
}

impl Format {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::Email => "email",
            Format::Uuid => "uuid",
            Format::Uri => "uri",
            Format::Date => "date",
            Format::DateTime => "date-time",
            Format::Time => "time",
        }
    }
}
