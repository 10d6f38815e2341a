//! The page that shows an OpenAPI document to people.

/// HTML without anything from elsewhere; it reads the document that the `document` attribute of its body names, relative
/// to itself.
pub const PAGE: &str = include_str!("page.html");
