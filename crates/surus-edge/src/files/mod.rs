//! The files of a site.
//!
//! - [`site`]: which file or script a path means; [`path`], [`fs`]: what it builds on
//! - [`hidden`], [`backups`]: which are not for clients
//! - [`serve`]: files as responses; [`conditional`]: whether one need be sent; [`media_types`]: what one is

pub(crate) mod backups;
pub(crate) mod conditional;
pub(crate) mod fs;
pub(crate) mod hidden;
pub(crate) mod media_types;
pub(crate) mod path;
pub(crate) mod serve;
pub(crate) mod site;
