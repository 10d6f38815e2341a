//! Parameters of statements, as text; only bytes for `bytea` are sent as they are.

use bytes::{BufMut, BytesMut};
use postgres_protocol::IsNull;

/// Object identifiers of types, from the server's `pg_type.dat`.
pub(crate) mod oid {
    pub(crate) const BOOL: u32 = 16;
    pub(crate) const BYTEA: u32 = 17;
    pub(crate) const INT8: u32 = 20;
    pub(crate) const INT2: u32 = 21;
    pub(crate) const INT4: u32 = 23;
    pub(crate) const OID: u32 = 26;
    pub(crate) const JSON: u32 = 114;
    pub(crate) const FLOAT4: u32 = 700;
    pub(crate) const FLOAT8: u32 = 701;
    pub(crate) const NUMERIC: u32 = 1700;
    pub(crate) const JSONB: u32 = 3802;
}

/// A value for `$1`.
#[derive(Debug, Clone)]
pub enum Parameter {
    /// NULL
    Null,
    /// True or false, or 1 and 0 where a number is wanted.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// Text in the database's notation of the type that is wanted, or the bytes of a `bytea`.
    Text(Box<[u8]>),
    /// Text of an array, `{1,2}`.
    Array(Box<[u8]>),
}

impl Parameter {
    /// 1 if it is sent in binary form to a parameter of this type.
    pub(crate) fn format(&self, wanted: u32) -> i16 {
        i16::from(wanted == oid::BYTEA && matches!(self, Parameter::Text(_)))
    }

    /// Why it cannot be one of this type.
    pub(crate) fn refusal(&self, wanted: u32) -> Option<&'static str> {
        match self {
            Parameter::Array(_) if matches!(wanted, oid::JSON | oid::JSONB) => {
                Some("is an array, and the database wants JSON: json_encode() it")
            }
            _ => None,
        }
    }

    pub(crate) fn write(&self, wanted: u32, to: &mut BytesMut) -> IsNull {
        match self {
            Parameter::Null => return IsNull::Yes,
            Parameter::Bool(value) => to.put_slice(match (wanted, value) {
                (
                    oid::INT2 | oid::INT4 | oid::INT8 | oid::NUMERIC | oid::FLOAT4 | oid::FLOAT8,
                    _,
                ) => {
                    if *value {
                        b"1"
                    } else {
                        b"0"
                    }
                }
                (_, true) => b"true",
                (_, false) => b"false",
            }),
            Parameter::Int(value) => write_text(*value, to),
            Parameter::Float(value) if value.is_infinite() => to.put_slice(if *value > 0.0 {
                b"Infinity"
            } else {
                b"-Infinity"
            }),
            Parameter::Float(value) => write_text(*value, to),
            Parameter::Text(bytes) | Parameter::Array(bytes) => to.put_slice(bytes),
        }
        IsNull::No
    }
}

fn write_text(value: impl std::fmt::Display, to: &mut BytesMut) {
    use std::fmt::Write;
    // Cannot fail: the buffer grows.
    let _ = write!(to, "{value}");
}

/// Whether values of this type are asked for in binary form, which costs less than their text.
pub(crate) fn is_binary(kind: u32) -> bool {
    matches!(
        kind,
        oid::BOOL | oid::BYTEA | oid::INT2 | oid::INT4 | oid::INT8 | oid::OID | oid::FLOAT8
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(parameter: &Parameter, wanted: u32) -> String {
        let mut to = BytesMut::new();
        parameter.write(wanted, &mut to);
        String::from_utf8(to.to_vec()).expect("text")
    }

    #[test]
    fn numbers_keep_all_their_digits() {
        for number in [0.1, 1e300, 5e-324, -1.5, f64::MAX] {
            let written = text(&Parameter::Float(number), oid::FLOAT8);
            assert_eq!(written.parse::<f64>(), Ok(number));
        }
        assert_eq!(text(&Parameter::Float(f64::NAN), oid::FLOAT8), "NaN");
        assert_eq!(
            text(&Parameter::Float(f64::NEG_INFINITY), oid::FLOAT8),
            "-Infinity"
        );
        assert_eq!(
            text(&Parameter::Int(i64::MIN), oid::INT8),
            i64::MIN.to_string()
        );
    }

    #[test]
    fn a_bool_may_be_a_number() {
        assert_eq!(text(&Parameter::Bool(true), oid::INT4), "1");
        assert_eq!(text(&Parameter::Bool(false), oid::BOOL), "false");
    }
}
