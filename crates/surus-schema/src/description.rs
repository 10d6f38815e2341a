//! The PHP side's description of classes that input is hydrated to: `Surus\Schema\Describer` writes it as JSON.

use serde::Deserialize;
use serde_json::Value;

/// A class and all classes that it refers to.
#[derive(Debug, Deserialize)]
pub struct Description {
    /// Index of the class that the input as a whole becomes.
    pub root: u16,
    /// Types refer to classes by their index.
    pub classes: Vec<Class>,
    /// The most bytes of a body; only for this input.
    pub max_bytes: Option<usize>,
    /// The most levels of nesting.
    pub max_depth: Option<usize>,
}

/// A class that a type of the kind "object", "enum", "date" or "file" refers to.
#[derive(Debug, Deserialize)]
pub struct Class {
    /// The name in documents, unique among the classes of an application.
    pub title: String,
    /// For documents.
    #[serde(default)]
    pub description: Option<String>,
    /// The PHP value that input becomes.
    #[serde(flatten)]
    pub kind: ClassKind,
}

/// The PHP value that input becomes.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ClassKind {
    /// An object, by its constructor.
    Object {
        /// In the order of the constructor's parameters.
        properties: Vec<Property>,
        /// Refuse properties that are not declared.
        #[serde(default)]
        strict: bool,
        /// For documents.
        #[serde(default)]
        example: Option<Value>,
    },
    /// A case of an enum.
    Enum {
        /// The value of each case in input, in the order of declaration: all strings, or all integers.
        values: Vec<Value>,
    },
    /// A class whose constructor takes a date as text.
    Date,
    /// The class of uploaded files.
    File,
}

/// A parameter of a constructor.
#[derive(Debug, Deserialize)]
pub struct Property {
    /// Its name in input.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: Type,
    /// Whether it has no default.
    pub required: bool,
    /// For documents; PHP itself sets the default.
    #[serde(default)]
    pub default: Option<Value>,
    /// For documents.
    #[serde(default)]
    pub description: Option<String>,
    /// For documents.
    #[serde(default)]
    pub example: Option<Value>,
    /// For documents.
    #[serde(default)]
    pub deprecated: bool,
    /// File, line and parameter, for errors at boot.
    #[serde(default)]
    pub place: String,
}

/// The type of a value.
#[derive(Debug, Default, Deserialize)]
pub struct Type {
    /// The allowed values.
    #[serde(flatten)]
    pub shape: Shape,
    /// Whether null is allowed.
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
    /// Anything.
    #[default]
    Mixed,
    /// Null only.
    Null,
    /// True or false.
    Boolean,
    /// A number without a fraction.
    Integer(Range),
    /// Any number.
    Number(Range),
    /// A text.
    String {
        /// The smallest length.
        min_length: Option<usize>,
        /// The largest length.
        max_length: Option<usize>,
        /// A regular expression, not anchored.
        pattern: Option<String>,
        /// The format of the text.
        format: Option<Format>,
        /// The allowed schemes of URLs.
        #[serde(default)]
        schemes: Vec<String>,
    },
    /// A case of an enum.
    Enum {
        /// Index of the [`ClassKind::Enum`].
        class: u16,
    },
    /// A date that becomes an object.
    Date {
        /// Index of the [`ClassKind::Date`].
        class: u16,
        /// Its format in input.
        format: Format,
    },
    /// An object.
    Object {
        /// Index of the [`ClassKind::Object`].
        class: u16,
    },
    /// An uploaded file.
    File {
        /// Index of the [`ClassKind::File`].
        class: u16,
        /// In bytes.
        min_bytes: Option<usize>,
        /// In bytes.
        max_bytes: Option<usize>,
    },
    /// A list of values.
    List {
        /// The type of the items.
        items: Box<Type>,
        /// The smallest number of items.
        min_items: Option<usize>,
        /// The largest number of items.
        max_items: Option<usize>,
        /// Whether equal items are forbidden.
        #[serde(default)]
        unique: bool,
    },
    /// Values by name.
    Map {
        /// The type of the items.
        items: Box<Type>,
        /// The smallest number of items.
        min_items: Option<usize>,
        /// The largest number of items.
        max_items: Option<usize>,
    },
    /// One of several.
    Union {
        /// The alternatives, in the order of declaration.
        any: Vec<Type>,
    },
}

/// The allowed numbers.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Range {
    /// The smallest number.
    pub minimum: Option<f64>,
    /// The largest number.
    pub maximum: Option<f64>,
    /// Numbers must be greater than this.
    pub exclusive_minimum: Option<f64>,
    /// Numbers must be less than this.
    pub exclusive_maximum: Option<f64>,
    /// Numbers must be multiples of this.
    pub multiple_of: Option<f64>,
}

/// Formats of text, with the names of JSON Schema.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// An e-mail address.
    Email,
    /// A UUID with hyphens, of any version.
    Uuid,
    /// An absolute URL.
    Uri,
    /// RFC 3339's `full-date`.
    Date,
    /// RFC 3339's `date-time`.
    DateTime,
    /// RFC 3339's `full-time`.
    Time,
}

impl Format {
    /// Its name in JSON Schema.
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
