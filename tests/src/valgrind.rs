//! A server under valgrind, which sees each access to memory that is freed.

/// What to start it under: see [`crate::surus::Options::under`].
pub const VALGRIND: [&str; 6] = [
    "valgrind",
    concat!(
        "--suppressions=",
        env!("CARGO_MANIFEST_DIR"),
        "/stress/valgrind.supp"
    ),
    "-q",
    "--trace-children=yes",
    "--undef-value-errors=no",
    "--num-callers=20",
];
