//! The oracle: is this answer the request's own, or an error that says so?

use surus_tests::surus::Mode;

use crate::{
    exchange::Outcome,
    interruption::Interruption,
    operation::Handle,
    plan::{Plan, Scene},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Every word is the request's own.
    Right,
    /// The client has left, or the deadline has passed.
    Cut,
    /// The script has ended itself, as planned.
    Ended,
    /// An error that says so, where there may be one.
    Declared,
    Wrong(Fault, String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Somebody else's word.
    Foreign,
    /// 200, and words are missing or strange.
    Odd,
    /// No answer, or one by the deadline where nothing takes that long.
    Hang,
    /// The connection broke.
    Closed,
    /// An error for which there is no reason.
    Undeserved,
    /// A worker or the master has died.
    Death,
    /// Something is left over: descriptors, memory, rows that were rolled back.
    Left,
}

pub(crate) fn judge(scene: &Scene, plan: &Plan, outcome: Outcome) -> Verdict {
    let stops = scene.interruption == Interruption::Stop;
    let (status, body) = match outcome {
        Outcome::Left => return Verdict::Cut,
        Outcome::Hang => return wrong(Fault::Hang, "no answer"),
        // What has come into the kernel's queue after the last accept is refused by the kernel.
        Outcome::Refused(_) if stops => return Verdict::Declared,
        Outcome::Closed(text) if stops && text.starts_with("Connection reset") => {
            return Verdict::Declared
        }
        Outcome::Refused(error) => return wrong(Fault::Closed, &error.to_string()),
        Outcome::Closed(text) => return wrong(Fault::Closed, &text),
        Outcome::Answer { status, body } => (status, body),
    };
    // Who has a connection that is wanted twice may be named.
    let in_use = body.starts_with("Surus\\ConnectionInUse");
    if !in_use && has_foreign_token(&body, plan.token()) {
        return wrong(Fault::Foreign, &format!("{status} {body}"));
    }
    let end = plan.end.map(|(end, _)| end);
    match status {
        200 if body == plan.answer() => Verdict::Right,
        200 if end == Some("exit") && body == format!("left {}", plan.token()) => Verdict::Ended,
        200 => wrong(Fault::Odd, &format!("200 {body}")),
        500 if end.is_some_and(|end| end != "exit") => Verdict::Ended,
        500 if may_fail(scene, plan, in_use) => Verdict::Declared,
        503 if may_be_refused(scene) => Verdict::Declared,
        504 if scene.interruption == Interruption::Deadline => Verdict::Cut,
        504 => wrong(Fault::Hang, "504"),
        502 => wrong(Fault::Death, "502"),
        _ => wrong(Fault::Undeserved, &format!("{status} {body}")),
    }
}

/// A connection that is shared breaks for all when one of its requests is cut off; else who finds it in use is told just that.
fn may_fail(scene: &Scene, plan: &Plan, in_use: bool) -> bool {
    let shared = scene.mode == Mode::Coroutine && plan.operation.handle == Handle::Shared;
    scene.interruption.breaks_connections()
        || (shared && scene.interruption != Interruption::Nothing)
        || (in_use && scene.mode == Mode::Coroutine)
}

/// Its application boots again, or who waits in line for its isolate has no time left.
fn may_be_refused(scene: &Scene) -> bool {
    use Interruption::{Deadline, Fatal, FullDisk, Memory, Reload, Stop};
    matches!(
        scene.interruption,
        Deadline | Fatal | FullDisk | Memory | Reload | Stop
    )
}

/// True if `text` has a token that is not `own`: `t`, the seed, the scene and the number, with an `x` between.
fn has_foreign_token(text: &str, own: &str) -> bool {
    let prefix = own.split('x').next().unwrap_or(own);
    text.match_indices(prefix).any(|(at, _)| {
        let rest = &text[at..];
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(rest.len());
        rest[..end].contains('x') && &rest[..end] != own
    })
}

pub(crate) fn wrong(fault: Fault, text: &str) -> Verdict {
    Verdict::Wrong(fault, text.chars().take(400).collect())
}

#[cfg(test)]
mod tests {
    use super::has_foreign_token;

    #[test]
    fn only_another_ones_token_is_foreign() {
        let own = "t7xc1x12";
        assert!(!has_foreign_token("heard t7xc1x12-1 t7xc1x12-2", own));
        assert!(has_foreign_token("heard t7xc1x12-1 t7xc1x13-2", own));
        assert!(has_foreign_token("heard t7xc1x1-1", own));
        assert!(has_foreign_token("heard t7xc1x123-1", own));
        assert!(!has_foreign_token("SQLSTATE[HY000]: server closed", own));
    }
}
