//! What goes wrong.

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::ErrorResponseBody;

/// Whose fault it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    #[default]
    /// The server has refused the statement.
    Server,
    /// There is no connection, or it was lost; what was asked may have been done.
    Connection,
    /// It was never sent: wrong number of parameters, a statement for a connection of its own.
    Usage,
    /// It was never sent: too many wait, or it has waited too long.
    Busy,
    /// The result has more bytes than the caller has room for.
    TooLarge,
}

/// An error.
#[derive(Debug, Clone)]
pub struct Failure(Box<Details>);

/// What is known of an error; what the server has not said is empty.
#[derive(Debug, Clone, Default)]
pub struct Details {
    /// Whose fault it is.
    pub kind: Kind,
    /// A sentence without a full stop.
    pub message: String,
    /// SQLSTATE: five characters; empty if it is not from the server.
    pub state: String,
    /// More, and what to do; empty: nothing.
    pub detail: String,
    /// What to do.
    pub hint: String,
    /// The character of the SQL text, from 1; 0: none.
    pub position: u32,
    /// The constraint that was violated.
    pub constraint: String,
    /// The table.
    pub table: String,
    /// The column.
    pub column: String,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Failure(Box::new(Details {
            kind,
            message: message.into(),
            ..Details::default()
        }))
    }

    pub(crate) fn connection(message: impl Into<String>) -> Self {
        Self::new(Kind::Connection, message)
    }

    /// A failure of the caller.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// What the server has sent.
    pub(crate) fn from_server(body: &ErrorResponseBody) -> Self {
        let mut failure = Self::new(Kind::Server, "");
        let mut fields = body.fields();
        // What is not well-formed is left out.
        while let Ok(Some(field)) = fields.next() {
            let text = String::from_utf8_lossy(field.value_bytes()).into_owned();
            match field.type_() {
                b'C' => failure.state = text,
                b'M' => failure.message = text,
                b'D' => failure.detail = text,
                b'H' => failure.hint = text,
                b'P' => failure.position = text.parse().unwrap_or(0),
                b'n' => failure.constraint = text,
                b't' => failure.table = text,
                b'c' => failure.column = text,
                _ => {}
            }
        }
        failure
    }

    /// The same as the end of a connection.
    pub(crate) fn as_lost(&self) -> Self {
        let mut lost = self.clone();
        lost.kind = Kind::Connection;
        lost
    }

    /// Says more about it.
    pub(crate) fn tell(mut self, message: impl FnOnce(&str) -> String) -> Self {
        self.message = message(&self.message);
        self
    }
}

impl Deref for Failure {
    type Target = Details;

    fn deref(&self) -> &Details {
        &self.0
    }
}

impl DerefMut for Failure {
    fn deref_mut(&mut self) -> &mut Details {
        &mut self.0
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
