//! `surus stubs`: writes the classes that the binary adds to PHP as files, for editors and analysers.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::{fs, iter};

use crate::cli::StubsArgs;
use crate::misconfigured;

pub(crate) fn run(arguments: &StubsArgs) -> ExitCode {
    let folder = &arguments.folder;
    match write(folder) {
        Ok(count) => {
            let _ = writeln!(
                io::stdout(),
                "{count} files are in {}: PHP never reads them, editors and analysers do",
                folder.display()
            );
            ExitCode::SUCCESS
        }
        Err(error) => misconfigured(&format!("{}: {error}", folder.display())),
    }
}

/// Writes the files. Those of an older version are replaced.
fn write(folder: &Path) -> io::Result<usize> {
    let native = iter::once(("native.php", surus_zend::NATIVE_STUBS));
    let mut count = 0;
    for (name, text) in surus_zend::php_sources().chain(native) {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
        count += 1;
    }
    Ok(count)
}
