/// Who reads what the client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// The connection's task reads heads, or frames.
    Heads,
    /// The owner of the request's body reads it.
    Body,
    /// Nobody needs it any more: it is discarded for a moment before the connection is closed.
    Nobody,
}
