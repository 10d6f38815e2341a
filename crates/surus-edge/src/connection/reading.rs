/// Whose what the client sends is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// The connection's task reads heads, or frames.
    Heads,
    /// Who has the request's body reads it.
    Body,
    /// Nobody wants it any more: it is skipped for a moment before the connection is closed.
    Nobody,
}
