//! The PHP classes that come with the binary: everything in the packages below `php`.

/// `(lower-case class name, file name in backtraces, source)`, sorted.
const SOURCES: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/php_classes.rs"));

/// File name and source of a class; PHP's class names have no case.
pub(crate) fn source(name: &[u8]) -> Option<(&'static str, &'static str)> {
    let name = name.to_ascii_lowercase();
    let index = SOURCES
        .binary_search_by(|(class, ..)| class.as_bytes().cmp(&name))
        .ok()?;
    let (_, file, source) = SOURCES[index];
    Some((file, source))
}

/// All of them: name of the file, source.
pub fn php_sources() -> impl Iterator<Item = (&'static str, &'static str)> {
    SOURCES
        .iter()
        .map(|(_, file, source)| (file.trim_start_matches("surus:"), *source))
}

/// Native classes and functions, as declarations without code.
pub const NATIVE_STUBS: &str = include_str!("../../stubs/http.stub.php");

#[cfg(test)]
mod tests {
    #[test]
    fn classes_are_found_in_any_case() {
        let (file, source) = super::source(b"surus\\APP").expect("Surus\\App is there");
        assert_eq!(file, "surus:App.php");
        assert!(source.starts_with("<?php"));
        assert!(super::source(b"surus\\nothing").is_none());
    }
}
