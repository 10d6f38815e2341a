//! The files of a site.
//!
//! - [`site`]: which file or script a path means; [`path`], [`fs`]: its foundations
//! - [`hidden`], [`backups`]: which files are not served
//! - [`serve`]: files as responses; [`conditional`]: whether one must be sent; [`media_types`]: the type of one

pub(crate) mod backups;
pub(crate) mod conditional;
pub(crate) mod fs;
pub(crate) mod hidden;
pub(crate) mod media_types;
pub(crate) mod path;
pub(crate) mod serve;
pub(crate) mod site;
