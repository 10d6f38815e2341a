//! Answers in place of PHP's.

use bytes::Bytes;
use http::{header, HeaderMap, HeaderValue, Response, StatusCode};
use surus_schema::weighted;

use crate::{body::response_body::ResponseBody, exchange::Exchange};

/// `Vary` of an answer that is HTML or JSON, depending on the client.
const VARIES: HeaderValue = HeaderValue::from_static("accept");

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

/// The same, but as a page for clients that prefer HTML.
pub(crate) fn refusal(status: u16, headers: &HeaderMap) -> Response<ResponseBody> {
    let mut answer = plain_answer(status);
    answer.headers_mut().insert(header::VARY, VARIES);
    if prefers_html(headers) {
        let title = answer.status().canonical_reason().unwrap_or("Error");
        let page =
            format!("<!doctype html><title>{status} {title}</title><h1>{status} {title}</h1>");
        *answer.body_mut() = ResponseBody::full(Bytes::from(page));
        let html = HeaderValue::from_static("text/html; charset=UTF-8");
        answer.headers_mut().insert(header::CONTENT_TYPE, html);
    }
    answer
}

/// Whether a client prefers HTML to JSON, as a browser does (RFC 9110, 12.5.1).
fn prefers_html(headers: &HeaderMap) -> bool {
    let (mut html, mut json) = ((0, 0), (0, 0));
    let values = headers.get_all(header::ACCEPT).iter();
    for (range, quality) in values
        .filter_map(|value| value.to_str().ok())
        .flat_map(weighted)
    {
        let range = range.to_ascii_lowercase();
        // The most specific range decides.
        let take = |best: &mut (i32, u16), exact: &str, group: &str| {
            let rank = match range.as_str() {
                range if range == exact => 3,
                range if range == group => 2,
                "*/*" => 1,
                _ => return,
            };
            if rank > best.0 {
                *best = (rank, quality);
            }
        };
        take(&mut html, "text/html", "text/*");
        take(&mut json, "application/json", "application/*");
    }
    html.1 > json.1
}

/// Answers an uncaught exception: HTML for a browser, problem+json otherwise; detail in development only. A response
/// that is already being sent is cut off, so that the client does not take the received part for the whole.
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
    let html = prefers_html(&exchange.headers.get());
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
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(header::VARY, VARIES);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_get_pages() {
        let accepts = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, value.parse().unwrap());
            prefers_html(&headers)
        };
        for value in [
            "text/html",
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "application/json;q=0.5, text/*",
        ] {
            assert!(accepts(value), "{value}");
        }
        for value in [
            "",
            "*/*",
            "application/json",
            "application/json, text/html;q=0.9",
            "text/html;q=0, */*",
            "text/html;q=x",
        ] {
            assert!(!accepts(value), "{value}");
        }
        assert!(!prefers_html(&HeaderMap::new()));
    }
}
