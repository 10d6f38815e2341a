//! Link arguments of a library do not reach an executable. The functions of surus-zend that stand before libc's are
//! exported here: libphp, libpq, libcurl and the extensions then call them.

fn main() {
    // Set by surus-zend's build script through its `links` key.
    println!("cargo:rerun-if-env-changed=DEP_SURUS_ZEND_EXPORTS");
    for name in std::env::var("DEP_SURUS_ZEND_EXPORTS")
        .unwrap_or_default()
        .split_whitespace()
    {
        println!("cargo:rustc-link-arg=-Wl,-u,{name},--export-dynamic-symbol={name}");
    }
}
