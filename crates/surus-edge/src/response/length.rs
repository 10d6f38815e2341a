//! The server decides on the length of a response: with a wrong one from an application, the client would take the rest
//! for the beginning of the next response, or wait for more.

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{Response, StatusCode};
use http_body::Body;

use crate::response::upgrade;
use crate::{plain, BoxError, Reply};

/// Corrects the `Content-Length` of a response. `is_head`: the length is that of the response to GET, and nothing is
/// sent. `may_upgrade`: the client has asked for another protocol.
pub(crate) fn correct<B>(response: &mut Response<Reply<B>>, is_head: bool, may_upgrade: bool)
where
    B: Body<Data = Bytes, Error = BoxError> + Unpin,
{
    let status = response.status();
    if status.is_informational() {
        // Interim responses are sent elsewhere; 101 is allowed only with an upgrade that the client has asked for.
        match response.body() {
            Reply::Upgrade(_) if status != StatusCode::SWITCHING_PROTOCOLS => {}
            Reply::Upgrade(_) if may_upgrade => return,
            Reply::Upgrade(_) => return upgrade::refuse(response),
            _ => {}
        }
        *response = plain(StatusCode::INTERNAL_SERVER_ERROR);
        return;
    }
    // RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5: such responses have no body. One that was written is discarded.
    if matches!(
        status,
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED
    ) {
        *response.body_mut() = Reply::Empty;
    }
    // Most responses have a few headers, and none of these.
    if !response
        .headers()
        .keys()
        .any(|name| *name == CONTENT_LENGTH)
    {
        return;
    }
    let mut said = response.headers().get_all(CONTENT_LENGTH).iter();
    let Some(first) = said.next() else { return };
    let digits = first
        .to_str()
        .ok()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let number: Option<u64> = digits.and_then(|text| text.parse().ok());
    let sent = response.body().size_hint().exact();
    let right = match (number, said.next(), sent) {
        // For 205 the encoder writes it: 0, as for any empty body.
        _ if status == StatusCode::NO_CONTENT || status == StatusCode::RESET_CONTENT => false,
        (Some(_), None, _) if is_head || status == StatusCode::NOT_MODIFIED => true,
        (Some(number), None, Some(sent)) => number == sent,
        // No more than that is sent, and the connection is closed if it was less.
        (Some(_), None, None) => true,
        _ => false,
    };
    if !right {
        response.headers_mut().remove(CONTENT_LENGTH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use http_body_util::combinators::UnsyncBoxBody;

    fn corrected(status: u16, lengths: &[&'static str], is_head: bool) -> (u16, Option<String>) {
        let body = Reply::<UnsyncBoxBody<Bytes, BoxError>>::Bytes(Bytes::from_static(b"hello"));
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        for length in lengths {
            let value = HeaderValue::from_static(length);
            response.headers_mut().append(CONTENT_LENGTH, value);
        }
        correct(&mut response, is_head, false);
        let length = response.headers().get(CONTENT_LENGTH);
        let length = length.map(|length| length.to_str().unwrap().to_owned());
        (response.status().as_u16(), length)
    }

    #[test]
    fn what_is_said_is_true() {
        for (status, lengths, is_head, expected) in [
            (200, &[][..], false, (200, None)),
            (200, &["5"], false, (200, Some("5"))),
            (200, &["6"], false, (200, None)),
            (200, &["+5"], false, (200, None)),
            (200, &["5", "5"], false, (200, None)),
            (200, &["99"], true, (200, Some("99"))),
            (200, &["x"], true, (200, None)),
            (304, &["99"], false, (304, Some("99"))),
            (204, &["5"], false, (204, None)),
            (205, &["5"], false, (205, None)),
            (101, &["5"], false, (500, None)),
        ] {
            let (got, length) = corrected(status, lengths, is_head);
            assert_eq!((got, length.as_deref()), expected, "{status} {lengths:?}");
        }
    }
}
