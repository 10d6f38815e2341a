//! What the PHP side says about the classes that input is hydrated to: `Surus\Schema\Describer` writes it as JSON.

use serde::Deserialize;
use serde_json::Value;

/// A class and all that it refers to.
#[derive(Debug, Deserialize)]
pub struct Description {
    /// Index of the class that the input as a whole becomes.
    pub root: u16,
    /// The others refer to them by their index.
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
    /// For documents.
    #[serde(default)]
    pub description: Option<String>,
    /// What input becomes.
    #[serde(flatten)]
    pub kind: ClassKind,
}

/// What input becomes.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ClassKind {
    /// An object, by its constructor.
    Object {
        /// In the order of the constructor's parameters.
        properties: Vec<Property>,
        /// Refuse what is not declared.
        #[serde(default)]
        strict: bool,
        /// For documents.
        #[serde(default)]
        example: Option<Value>,
    },
    /// A case of an enum.
    Enum {
        /// What stands for each case in input, in the order of declaration: all strings, or all integers.
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
    /// As it is called in input.
    pub name: String,
    /// What it takes.
    #[serde(rename = "type")]
    pub kind: Type,
    /// It has no default.
    pub required: bool,
    /// For documents; what is hydrated is PHP's own default.
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

/// What a value has to be.
#[derive(Debug, Default, Deserialize)]
pub struct Type {
    /// Which values there are.
    #[serde(flatten)]
    pub shape: Shape,
    /// Null is one of them.
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
        /// At least so long.
        min_length: Option<usize>,
        /// At most so long.
        max_length: Option<usize>,
        /// A regular expression, not anchored.
        pattern: Option<String>,
        /// What it is a text of.
        format: Option<Format>,
        /// Of URLs.
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
        /// How it is written.
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
        /// Bytes.
        min_bytes: Option<usize>,
        /// Bytes.
        max_bytes: Option<usize>,
    },
    /// Values one after the other.
    List {
        /// Each of them.
        items: Box<Type>,
        /// At least so many.
        min_items: Option<usize>,
        /// At most so many.
        max_items: Option<usize>,
        /// No two are equal.
        #[serde(default)]
        unique: bool,
    },
    /// Values by name.
    Map {
        /// Each of them.
        items: Box<Type>,
        /// At least so many.
        min_items: Option<usize>,
        /// At most so many.
        max_items: Option<usize>,
    },
    /// One of several.
    Union {
        /// Those, in the order in which they are declared.
        any: Vec<Type>,
    },
}

/// Which numbers there are.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Range {
    /// This one or more.
    pub minimum: Option<f64>,
    /// This one or less.
    pub maximum: Option<f64>,
    /// More than this one.
    pub exclusive_minimum: Option<f64>,
    /// Less than this one.
    pub exclusive_maximum: Option<f64>,
    /// Without a rest.
    pub multiple_of: Option<f64>,
}

/// As JSON Schema calls them.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// An e-mail address.
    Email,
    /// With hyphens, of any version.
    Uuid,
    /// An absolute one.
    Uri,
    /// RFC 3339's `full-date`.
    Date,
    /// RFC 3339's `date-time`.
    DateTime,
    /// RFC 3339's `full-time`.
    Time,
}

impl Format {
    /// JSON Schema's.
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
