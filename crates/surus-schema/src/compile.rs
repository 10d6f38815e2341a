//! From a description to a [`Schema`].

use std::fmt;
use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use crate::description::{self, ClassKind, Description, Property, Shape};
use crate::schema::{
    Cases, Class, Field, Files, InputLimits, Integers, Lists, Node, Rules, Schema, Strings,
};

const DEFAULT_LIMITS: InputLimits = InputLimits {
    bytes: 1024 * 1024,
    depth: 32,
};
/// Parsing and checking are recursive; this number of levels fits into any stack.
const MAX_DEPTH: usize = 512;
const MAX_BYTES: usize = 1 << 30;
/// The largest size of a compiled pattern; a larger one is a mistake.
const REGEX_BYTES: usize = 1024 * 1024;

/// A description that cannot be compiled; the text names the place in the application's source.
#[derive(Debug)]
pub struct CompileError(pub String);

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CompileError {}

impl Schema {
    /// Compiles the JSON that `Surus\Schema\Describer` writes.
    pub fn compile(text: &str) -> Result<Schema, CompileError> {
        let description: Description = serde_json::from_str(text)
            .map_err(|error| CompileError(format!("a description of a class: {error}")))?;
        let classes = description
            .classes
            .iter()
            .map(|class| compile_class(class, description.classes.len()))
            .collect::<Result<Vec<_>, _>>()?;
        if usize::from(description.root) >= classes.len() {
            return Err(CompileError("the described class is missing".to_owned()));
        }
        let limits = InputLimits {
            bytes: description
                .max_bytes
                .unwrap_or(DEFAULT_LIMITS.bytes)
                .min(MAX_BYTES),
            depth: description
                .max_depth
                .unwrap_or(DEFAULT_LIMITS.depth)
                .min(MAX_DEPTH),
        };
        let root = Node {
            rules: Rules::Object(description.root),
            nullable: false,
            messages: None,
        };
        Ok(Schema {
            description,
            classes,
            root,
            limits,
        })
    }
}

fn compile_class(class: &description::Class, classes: usize) -> Result<Class, CompileError> {
    match &class.kind {
        ClassKind::Object {
            properties, strict, ..
        } => {
            let fields = properties
                .iter()
                .map(|property| compile_field(property, classes))
                .collect::<Result<_, _>>()?;
            Ok(Class::Object {
                fields,
                strict: *strict,
            })
        }
        ClassKind::Enum { values } => {
            let strings = || {
                values
                    .iter()
                    .map(|value| value.as_str().map(str::to_owned))
                    .collect::<Option<Vec<_>>>()
            };
            let integers = || values.iter().map(Value::as_i64).collect::<Option<Vec<_>>>();
            strings()
                .map(Cases::Strings)
                .or_else(|| integers().map(Cases::Integers))
                .map(Class::Enum)
                .ok_or_else(|| {
                    CompileError(format!(
                        "the cases of {} are neither all strings nor all integers",
                        class.title
                    ))
                })
        }
        ClassKind::Date => Ok(Class::Date),
        ClassKind::File => Ok(Class::File),
    }
}

fn compile_field(property: &Property, classes: usize) -> Result<Field, CompileError> {
    let node = compile_node(&property.kind, classes)
        .map_err(|reason| CompileError(format!("{}: {reason}", property.place)))?;
    Ok(Field {
        name: property.name.clone(),
        required: property.required,
        node,
    })
}

fn compile_node(kind: &description::Type, classes: usize) -> Result<Node, String> {
    let known = |class: u16| {
        if usize::from(class) < classes {
            Ok(class)
        } else {
            Err("refers to a class that is not described".to_owned())
        }
    };
    let rules = match &kind.shape {
        Shape::Mixed => Rules::Mixed,
        Shape::Null => Rules::Null,
        Shape::Boolean => Rules::Boolean,
        Shape::Integer(range) => Rules::Integer(compile_integers(range)?),
        Shape::Number(range) => {
            check_range(range)?;
            Rules::Number(*range)
        }
        Shape::String {
            min_length,
            max_length,
            pattern,
            format,
            schemes,
        } => {
            let pattern = pattern.as_deref().map(compile_pattern).transpose()?;
            let (min, max) = bounds(*min_length, *max_length)?;
            Rules::String(Box::new(Strings {
                min,
                max,
                pattern,
                format: *format,
                schemes: schemes.clone(),
            }))
        }
        Shape::Enum { class } => Rules::Enum(known(*class)?),
        Shape::Date { class, format } => Rules::Date(known(*class)?, *format),
        Shape::Object { class } => Rules::Object(known(*class)?),
        Shape::File {
            class,
            min_bytes,
            max_bytes,
        } => {
            let (min, max) = bounds(*min_bytes, *max_bytes)?;
            Rules::File(Files {
                class: known(*class)?,
                min,
                max,
            })
        }
        Shape::List {
            items,
            min_items,
            max_items,
            unique,
        } => Rules::List(compile_list(
            items, *min_items, *max_items, *unique, classes,
        )?),
        Shape::Map {
            items,
            min_items,
            max_items,
        } => Rules::Map(compile_list(items, *min_items, *max_items, false, classes)?),
        Shape::Union { any } => {
            let mut nodes = any
                .iter()
                .map(|each| compile_node(each, classes))
                .collect::<Result<Vec<_>, _>>()?;
            // Text of a form always fits a string: the narrower types are tried first.
            nodes.sort_by_key(|node| breadth(&node.rules));
            Rules::Union(nodes)
        }
    };
    let messages = (!kind.messages.is_empty()).then(|| {
        let pairs = kind.messages.iter();
        pairs
            .map(|(rule, text)| (rule.clone(), Arc::from(text.as_str())))
            .collect()
    });
    Ok(Node {
        rules,
        nullable: kind.nullable,
        messages,
    })
}

fn breadth(rules: &Rules) -> u8 {
    match rules {
        Rules::Null => 0,
        Rules::Integer(_) => 1,
        Rules::Number(_) => 2,
        Rules::Boolean => 3,
        Rules::Enum(_) => 4,
        Rules::Date(..) => 5,
        Rules::Object(_) => 6,
        Rules::List(_) => 7,
        Rules::Map(_) => 8,
        Rules::String(_) => 9,
        Rules::Union(_) => 10,
        Rules::Mixed => 11,
        Rules::File(_) => 12,
    }
}

fn compile_list(
    items: &description::Type,
    min: Option<usize>,
    max: Option<usize>,
    unique: bool,
    classes: usize,
) -> Result<Box<Lists>, String> {
    let (min, max) = bounds(min, max)?;
    Ok(Box::new(Lists {
        items: compile_node(items, classes)?,
        min,
        max,
        unique,
    }))
}

fn bounds(min: Option<usize>, max: Option<usize>) -> Result<(usize, usize), String> {
    let (min, max) = (min.unwrap_or(0), max.unwrap_or(usize::MAX));
    if min > max {
        return Err(format!("at least {min} and at most {max} cannot both be"));
    }
    Ok((min, max))
}

fn compile_pattern(pattern: &str) -> Result<Regex, String> {
    regex::RegexBuilder::new(pattern)
        .size_limit(REGEX_BYTES)
        .build()
        .map_err(|error| {
            // The last line names the error; the lines before mark its place.
            let error = error.to_string();
            let reason = error.lines().last().unwrap_or_default();
            format!("the pattern {pattern:?} cannot be used: {reason}")
        })
}

fn check_range(range: &description::Range) -> Result<(), String> {
    let low = range.minimum.or(range.exclusive_minimum);
    let high = range.maximum.or(range.exclusive_maximum);
    if let (Some(low), Some(high)) = (low, high) {
        if low > high {
            return Err(format!("no number is at least {low} and at most {high}"));
        }
    }
    match range.multiple_of {
        Some(step) if step.is_nan() || step <= 0.0 => {
            Err(format!("{step} has no multiples to be checked for"))
        }
        _ => Ok(()),
    }
}

/// Rounds bounds of integers to integers; bounds outside of the range of integers have no effect.
#[allow(clippy::cast_possible_truncation)]
fn compile_integers(range: &description::Range) -> Result<Integers, String> {
    check_range(range)?;
    let later = |x: f64| (x.floor() as i64).saturating_add(1);
    let earlier = |x: f64| (x.ceil() as i64).saturating_sub(1);
    let minimum = range
        .minimum
        .map(|x| x.ceil() as i64)
        .max(range.exclusive_minimum.map(later));
    let maximum = match (
        range.maximum.map(|x| x.floor() as i64),
        range.exclusive_maximum.map(earlier),
    ) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    let multiple_of = match range.multiple_of {
        Some(step) if step.fract() != 0.0 => {
            return Err(format!("integers are not counted in steps of {step}"))
        }
        step => step.map(|step| step as i64),
    };
    Ok(Integers {
        minimum,
        maximum,
        multiple_of,
    })
}
