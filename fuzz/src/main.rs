//! All fuzz targets in one program, so that it is built once: `SURUS_FUZZ` names the one to run.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../crates/surus-zend/src/router/mod.rs"]
mod router;

#[allow(dead_code)]
#[path = "../../crates/surus/src/config"]
mod config {
    pub(crate) mod fuzz;
    mod hints;
    mod list;
    mod memory;
    mod nearest;
    mod tables;
    mod units;
}

type Target = fn(&[u8]);

const TARGETS: &[(&str, Target)] = &[
    ("accept_encoding", surus_edge::fuzz::accept_encoding),
    ("admin", surus_master::fuzz::admin),
    ("conditional", surus_edge::fuzz::conditional),
    ("conditions", router::fuzz::conditions),
    ("config", config::fuzz::file),
    ("description", surus_schema::fuzz::description),
    ("files_of_form", surus_edge::fuzz::files_of_form),
    ("form", surus_schema::fuzz::form),
    ("formats", surus_schema::fuzz::formats),
    ("forwarded", surus_edge::fuzz::forwarded),
    ("frames", surus_edge::fuzz::frames),
    ("ids", surus_edge::fuzz::ids),
    ("json", surus_schema::fuzz::json),
    ("http1", surus_edge::fuzz::http1),
    ("media", surus_schema::fuzz::media),
    ("messages", surus_master::fuzz::messages),
    ("multipart", surus_schema::fuzz::multipart),
    ("network", surus_edge::fuzz::network),
    ("path", surus_edge::fuzz::path),
    ("paths", router::fuzz::paths),
    ("patterns", router::fuzz::patterns),
    ("proxy_protocol", surus_edge::fuzz::proxy_protocol),
    ("range", surus_edge::fuzz::range),
    ("request", surus_edge::fuzz::request),
    ("response", surus_edge::fuzz::response),
    ("site", surus_edge::fuzz::site),
    ("units", config::fuzz::units),
    ("validate", surus_schema::fuzz::validate),
    ("websocket", surus_edge::fuzz::websocket),
];

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let wanted = std::env::var("SURUS_FUZZ").unwrap_or_default();
    match TARGETS.iter().find(|(name, _)| *name == wanted) {
        Some((_, target)) => *target,
        None => {
            let names: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
            panic!("SURUS_FUZZ={wanted:?} is none of {}", names.join(", "))
        }
    }
});

fuzz_target!(|data: &[u8]| TARGET(data));
