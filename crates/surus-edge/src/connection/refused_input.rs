//! What the log needs to know of input that was refused before it became a request.

use std::cell::RefCell;

use crate::log::refusal::{first_line, Refusal};

#[derive(Debug, Default)]
enum Noted {
    /// Input is not noted.
    #[default]
    Nothing,
    /// The first line of input that is not a request yet; empty until something is received.
    First(Vec<u8>),
    /// The input was refused. Of several reasons the first one counts.
    Refused(Refusal, Vec<u8>),
}

#[derive(Debug, Default)]
pub(super) struct RefusedInput(RefCell<Noted>);

impl RefusedInput {
    /// From here on, notes the first line of input, for the log if it is refused.
    pub(super) fn note_first(&self) {
        self.0.replace(Noted::First(Vec::new()));
    }

    /// These bytes were received outside of a request.
    pub(super) fn note(&self, bytes: &[u8]) {
        if let Noted::First(first) = &mut *self.0.borrow_mut() {
            if first.is_empty() {
                *first = first_line(bytes).to_vec();
            }
        }
    }

    /// The input was a request.
    #[inline(always)]
    pub(super) fn forget(&self) {
        if let Noted::First(first) = &mut *self.0.borrow_mut() {
            *first = Vec::new();
        }
    }

    /// The input is refused.
    pub(super) fn refuse(&self, why: Refusal) {
        let mut noted = self.0.borrow_mut();
        *noted = match std::mem::take(&mut *noted) {
            Noted::Nothing => Noted::Refused(why, Vec::new()),
            Noted::First(first) => Noted::Refused(why, first),
            before @ Noted::Refused(..) => before,
        };
    }

    /// Why the input was refused, and how it begins.
    pub(super) fn take(&self) -> Option<(Refusal, Vec<u8>)> {
        match self.0.take() {
            Noted::Refused(why, first) => Some((why, first)),
            Noted::Nothing | Noted::First(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_and_the_first_reason_count() {
        let refusals = RefusedInput::default();
        refusals.note_first();
        refusals.note(b"GET / HTTP/1.1\r\nhost: a");
        refusals.forget();
        refusals.note(b"one\r\n");
        refusals.note(b"two\r\n");
        refusals.refuse(Refusal::Malformed);
        refusals.refuse(Refusal::Timeout);
        let (why, first) = refusals.take().expect("it was refused");
        assert_eq!((why, first.as_slice()), (Refusal::Malformed, &b"one"[..]));
        assert!(refusals.take().is_none());
    }

    #[test]
    fn nothing_is_noted_where_nobody_asks() {
        let refusals = RefusedInput::default();
        refusals.note(b"one\r\n");
        assert!(refusals.take().is_none());
        refusals.refuse(Refusal::Tls);
        assert_eq!(refusals.take(), Some((Refusal::Tls, Vec::new())));
    }
}
