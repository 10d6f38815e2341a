//! PHP in this process: started once, before any fork, and the isolates that it is copied into.

pub mod changes;
#[cfg(test)]
mod comparison_tests;
pub(crate) mod isolate;
pub(crate) mod php_classes;
pub(crate) mod process;
pub(crate) mod queue;
