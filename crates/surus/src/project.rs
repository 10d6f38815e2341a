//! `surus new`: a folder with a small application and its tests.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::cli::NewArgs;
use crate::misconfigured;

const FILES: &[(&str, &str)] = &[
    ("app.php", include_str!("../project/app.php")),
    ("surus.toml", include_str!("../project/surus.toml")),
    (
        "src/Database.php",
        include_str!("../project/src/Database.php"),
    ),
    ("src/Notes.php", include_str!("../project/src/Notes.php")),
    ("views/home.php", include_str!("../project/views/home.php")),
    ("tests/run.php", include_str!("../project/tests/run.php")),
    (".gitignore", ".env\n/data/\n"),
];

pub(crate) fn run(arguments: &NewArgs) -> ExitCode {
    match make(&arguments.folder) {
        Ok(()) => {
            let folder = arguments.folder.display();
            let _ = writeln!(
                io::stdout(),
                "{folder} is there. Next:\n  surus serve {folder} --dev\n  surus php {folder}/tests/run.php"
            );
            ExitCode::SUCCESS
        }
        Err(error) => misconfigured(&format!("{}: {error}", arguments.folder.display())),
    }
}

fn make(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    if fs::read_dir(folder)?.next().is_some() {
        return Err(io::Error::other("the folder is not empty"));
    }
    for (name, text) in FILES {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    let env = format!("APP_NAME=Notes\nAPP_SECRET={}\n", secret()?);
    fs::write(folder.join(".env"), env)
}

/// 32 random bytes in hexadecimal.
fn secret() -> io::Result<String> {
    let mut bytes = [0; 32];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
