//! The crate's interface, without a server: what a future's answer is, and what happens when it is dropped.
//!
//! PHP belongs to one thread of a process and starts once: one test runs all checks, one after the other.
#![forbid(unsafe_code)]

mod apart;
mod classic;
mod coroutine;
mod site;

use std::time::Duration;

use surus_zend::{Engine, EngineConfig};
use tokio::task::LocalSet;

#[test]
fn the_engine() {
    Engine::check_heaps();
    let config = EngineConfig {
        ini: vec![("ffi.enable".to_owned(), "1".to_owned())],
        dev: false,
        server_name: None,
        store: 0,
        in_turn: false,
        environment: None,
    };
    let engine = Engine::start(&config).expect("PHP starts");
    assert!(
        Engine::start(&EngineConfig::default()).is_err(),
        "PHP starts once"
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("an event loop");
    LocalSet::new().block_on(&runtime, async {
        engine.enter_worker(Duration::from_millis(10));
        classic::answers(&engine).await;
        classic::requests_wait_side_by_side(&engine).await;
        classic::a_dropped_future_is_a_client_that_left(&engine).await;
        classic::more_requests_than_isolates_wait_in_line(&engine).await;
        classic::idle_isolates_are_freed(&engine).await;
        classic::a_fatal_error_frees_the_isolate(&engine).await;
        classic::bodies_are_streamed_in_and_out(&engine).await;
        apart::an_open_basedir_is_one_requests(&engine).await;
        apart::locks_by_fcntl_are_waited_for(&engine).await;
        coroutine::what_does_not_boot_says_so(&engine).await;
        coroutine::routes_need_no_php(&engine).await;
        coroutine::requests_wait_side_by_side(&engine).await;
        coroutine::a_dropped_future_is_a_client_that_left(&engine).await;
        coroutine::a_computing_fiber_keeps_its_isolate(&engine).await;
        coroutine::too_many_requests_are_refused(&engine).await;
        coroutine::a_deadline_is_a_504(&engine).await;
        coroutine::a_fatal_error_boots_the_application_again(&engine).await;
        coroutine::a_boot_that_takes_long_is_a_503(&engine).await;
        coroutine::memory_comes_back(&engine).await;
        coroutine::state_is_swapped_only_where_another_goes_on(&engine).await;
        coroutine::superglobals_are_built_where_loaded_code_refers_to_them(&engine).await;
    });
}
