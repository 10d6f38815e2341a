//! Answers in place of PHP's.

use bytes::Bytes;
use http::{header, HeaderValue, Response, StatusCode};

use crate::{exchange::Exchange, ResponseBody};

/// An answer in place of PHP's, as problem+json without any detail.
pub(crate) fn plain_answer(status: u16) -> Response<ResponseBody> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let title = status.canonical_reason().unwrap_or("Error");
    let text = format!("{{\"title\":\"{title}\",\"status\":{}}}", status.as_u16());
    let mut answer = Response::new(ResponseBody::full(Bytes::from(text)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    answer
}

/// The answer for an uncaught exception: HTML for a browser, problem+json otherwise; detail in development only.
pub(crate) fn answer_exception(
    exchange: &Exchange,
    status: i32,
    class: &str,
    message: &str,
    trace: &str,
) {
    let status = u16::try_from(status).unwrap_or(500);
    let accepts = exchange
        .request
        .headers
        .get(header::ACCEPT)
        .and_then(|a| a.to_str().ok())
        .unwrap_or("");
    let title = StatusCode::from_u16(status)
        .ok()
        .and_then(|s| s.canonical_reason())
        .unwrap_or("Error");
    exchange.set_status(i32::from(status));
    if accepts.contains("text/html") {
        let detail = if exchange.dev {
            format!("<pre>{}</pre>", escape_html(trace))
        } else {
            String::new()
        };
        exchange.add_header(b"content-type", b"text/html; charset=UTF-8");
        exchange.write(
            format!("<!doctype html><title>{title}</title><h1>{status} {title}</h1>{detail}")
                .as_bytes(),
        );
        return;
    }
    let mut text = format!("{{\"title\":{},\"status\":{status}", json_string(title));
    if exchange.dev {
        text.push_str(&format!(
            ",\"exception\":{},\"detail\":{},\"trace\":{}",
            json_string(class),
            json_string(message),
            json_string(trace)
        ));
    }
    text.push('}');
    exchange.add_header(b"content-type", b"application/problem+json");
    exchange.write(text.as_bytes());
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn json_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
