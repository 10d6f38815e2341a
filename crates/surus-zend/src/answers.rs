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

/// Answers an uncaught exception: HTML for a browser, problem+json otherwise; detail in development only. A response that
/// is on its way already is cut off, so that nobody takes what has come for all of it.
pub(crate) fn answer_exception(
    exchange: &Exchange,
    status: i32,
    class: &str,
    message: &str,
    trace: &str,
) {
    let status = u16::try_from(status).ok();
    let status = status
        .and_then(|status| StatusCode::from_u16(status).ok())
        .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let title = status.canonical_reason().unwrap_or("Error");
    let code = status.as_u16();
    let accepts = exchange.request.headers.get(header::ACCEPT);
    let html = accepts
        .and_then(|accepts| accepts.to_str().ok())
        .is_some_and(|accepts| accepts.contains("text/html"));
    let (content_type, text) = if html {
        let detail = if exchange.dev {
            format!("<pre>{}</pre>", escape_html(trace))
        } else {
            String::new()
        };
        (
            "text/html; charset=UTF-8",
            format!("<!doctype html><title>{title}</title><h1>{code} {title}</h1>{detail}"),
        )
    } else {
        let mut text = format!("{{\"title\":{},\"status\":{code}", json_string(title));
        if exchange.dev {
            text.push_str(&format!(
                ",\"exception\":{},\"detail\":{},\"trace\":{}",
                json_string(class),
                json_string(message),
                json_string(trace)
            ));
        }
        text.push('}');
        ("application/problem+json", text)
    };
    exchange.answer_instead(|| {
        let mut answer = Response::new(ResponseBody::full(Bytes::from(text)));
        *answer.status_mut() = status;
        let content_type = HeaderValue::from_static(content_type);
        answer
            .headers_mut()
            .insert(header::CONTENT_TYPE, content_type);
        answer
    });
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
