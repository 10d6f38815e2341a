use super::*;

/// The text, with `<n>` in the place of the n-th file, and the files. In pieces of `size` bytes.
pub(super) fn scan(content_type: &str, body: &[u8], size: usize) -> (String, Vec<String>) {
    let mut scanner = Scanner::new(content_type.as_bytes()).expect("a form");
    let (mut text, mut files) = (String::new(), Vec::<String>::new());
    let mut tell = |found: Found<'_>| {
        match found {
            Found::Text(bytes) => text.push_str(&String::from_utf8_lossy(bytes)),
            Found::File => {
                text.push_str(&format!("<{}>", files.len()));
                files.push(String::new());
            }
            Found::Content(bytes) => {
                let file = files.last_mut().expect("a file has begun");
                file.push_str(&String::from_utf8_lossy(bytes));
            }
        }
        Ok(())
    };
    for piece in body.chunks(size) {
        scanner.push(piece, &mut tell).expect("told");
    }
    scanner.finish(&mut tell).expect("told");
    (text, files)
}

/// Checks the result for pieces of all sizes.
fn check(body: &str, text: &str, files: &[&str]) {
    for size in 1..=body.len() {
        let found = scan("multipart/form-data; boundary=XX", body.as_bytes(), size);
        let files = files.iter().map(ToString::to_string).collect();
        assert_eq!(found, (text.to_owned(), files), "in pieces of {size}");
    }
}

const FIELD: &str = "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nvalue\r\n";
const FILE: &str = "--XX\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f.txt\"\r\nContent-Type: text/plain\r\n\r\n";

#[test]
fn files_are_found() {
    for content in [
        "",
        "x",
        "a\r\n--X\r\n-XX\r\n\r\r\n\n",
        "\r",
        "\n",
        "--X",
        "\r\n--",
    ] {
        check(
            &format!("{FIELD}{FILE}{content}\r\n{FILE}two\r\n{FIELD}--XX--\r\n"),
            &format!("{FIELD}{FILE}<0>\r\n{FILE}<1>\r\n{FIELD}--XX--\r\n"),
            &[content, "two"],
        );
    }
    // Only a line feed.
    check(
        &format!("{FILE}one\n--XX--\r\n"),
        &format!("{FILE}<0>\n--XX--\r\n"),
        &["one"],
    );
}

#[test]
fn what_breaks_off_is_content() {
    check(
        &format!("{FILE}one\r\n--X"),
        &format!("{FILE}<0>"),
        &["one\r\n--X"],
    );
    check(&FILE[..FILE.len() - 2], &FILE[..FILE.len() - 2], &[]);
}

#[test]
fn after_a_doubt_everything_is_text() {
    let good = format!("{FILE}one\r\n");
    for doubt in [
        // Between the parts.
        "--XX \r\n",
        "--XXX\r\n",
        "--XX--\r\n",
        "--XX\n",
        "--XX\r\n\r\n",
        "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n--XX",
        // In the head of one.
        "--XX\r\nContent-Disposition: form-data; name=\"a\"\n\r\nvalue\r\n",
        "--XX\r\nContent-Disposition: form-data;\r\n name=\"a\"\r\n\r\nvalue\r\n",
        "--XX\r\nContent-Disposition: form-data; name=a; filename=b\r\n\r\nvalue\r\n",
        "--XX\r\nContent-Disposition: form-data; name=\"a\\\"\"; filename=\"b\"\r\n\r\nvalue\r\n",
        "--XX\r\nContent-Disposition: form-data; name=\"a\"; filename*=\"b\"\r\n\r\nvalue\r\n",
        "--XX\r\nContent-Disposition: form-data; filename=\"b\"\r\n\r\nvalue\r\n",
        "--XX\r\nContent-Disposition: form-data; name=\"a\"; filename=\"\"\r\n\r\nvalue\r\n",
        "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Disposition: form-data; name=\"a\"; filename=\"b\"\r\n\r\nvalue\r\n",
        "--XX\r\nContent-Type: text/plain\r\n\r\nvalue\r\n",
        "--XX\r\nContent-Disposition\0: form-data; name=\"a\"; filename=\"b\"\r\n\r\nvalue\r\n",
    ] {
        let rest = format!("{doubt}{FILE}two\r\n--XX--\r\n");
        check(
            &format!("{good}{rest}"),
            &format!("{FILE}<0>\r\n{rest}"),
            &["one"],
        );
    }
    let long = format!("--XX\r\nX-Long: {}\r\n\r\n", "x".repeat(MAX_HEAD));
    let (text, files) = scan("multipart/form-data; boundary=XX", long.as_bytes(), 1000);
    assert_eq!((text, files.len()), (long, 0));
}

#[test]
fn types() {
    for good in [
        "multipart/form-data; boundary=----WebKitFormBoundaryABC123",
        "Multipart/Form-Data;boundary=\"a_b-c\"",
    ] {
        assert!(Scanner::new(good.as_bytes()).is_some(), "{good}");
    }
    let long = format!("multipart/form-data; boundary={}", "x".repeat(71));
    for bad in [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"a",
        "multipart/form-data; boundary=a; charset=b",
        "multipart/form-data; charset=b; boundary=a",
        "multipart/form-data; boundary=a b",
        "multipart/mixed; boundary=a",
        "text/plain",
        &long,
    ] {
        assert!(Scanner::new(bad.as_bytes()).is_none(), "{bad}");
    }
}
