//! The page that shows an OpenAPI document to people.

/// HTML without external resources; it reads the document that the `document` attribute of its body names, relative to
/// its own URL.
pub const PAGE: &str = include_str!("page.html");
