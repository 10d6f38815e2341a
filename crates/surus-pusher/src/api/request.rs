//! Whose request it is: its signature.

use std::collections::BTreeMap;

use super::{Refusal, Request};
use crate::apps::App;
use crate::signature::{is_signed, md5_of};

/// Seconds that the clock of a server may differ.
const SKEW: u64 = 600;

/// The parameters of a query, by name in lower case.
pub(super) type Parameters = BTreeMap<String, String>;

/// The parameters of a request with the signature of this application, which covers its body.
pub(super) fn authenticated(app: &App, request: &Request<'_>) -> Result<Parameters, Refusal> {
    let parameters = signed(app, request)?;
    if !request.body.is_empty() || parameters.contains_key("body_md5") {
        let sent = parameters
            .get("body_md5")
            .map(|sent| sent.to_ascii_lowercase());
        if sent != Some(md5_of(request.body)) {
            return Err(Refusal::new(401, "body_md5 is not that of the body"));
        }
    }
    Ok(parameters)
}

/// The parameters, whatever the body is.
pub(super) fn signed(app: &App, request: &Request<'_>) -> Result<Parameters, Refusal> {
    let mut parameters = Parameters::new();
    for (name, value) in form_urlencoded::parse(request.query.as_bytes()) {
        let name = name.to_ascii_lowercase();
        if parameters
            .insert(name.clone(), value.into_owned())
            .is_some()
        {
            return Err(Refusal::new(400, format!("{name} is there twice")));
        }
    }
    let no = |why: &str| Err(Refusal::new(401, why));
    let of = |name: &str| parameters.get(name).map_or("", String::as_str);
    if of("auth_key") != app.key {
        return no("auth_key is not that of the application");
    }
    if of("auth_version") != "1.0" {
        return no("auth_version is not 1.0");
    }
    let Ok(time) = of("auth_timestamp").parse::<u64>() else {
        return no("auth_timestamp is no number of seconds");
    };
    if time.abs_diff(request.now) > SKEW {
        return Err(Refusal::new(
            401,
            format!("auth_timestamp differs by more than {SKEW} s from this server's clock"),
        ));
    }
    let signed: Vec<String> = parameters
        .iter()
        .filter(|(name, _)| *name != "auth_signature")
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let text = format!("{}\n{}\n{}", request.method, request.path, signed.join("&"));
    if !is_signed(&app.secret, text.as_bytes(), of("auth_signature")) {
        return no("auth_signature is wrong");
    }
    Ok(parameters)
}

/// A part of a path.
pub(super) fn decoded(part: &str) -> String {
    // A plus sign stands for itself there.
    let escaped = format!(
        "{}=",
        part.replace('+', "%2B")
            .replace('&', "%26")
            .replace('=', "%3D")
    );
    let decoded = form_urlencoded::parse(escaped.as_bytes()).next();
    decoded.map_or_else(String::new, |(name, _)| name.into_owned())
}
