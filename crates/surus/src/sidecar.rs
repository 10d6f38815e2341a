//! Programs that run beside the workers: `[process.NAME]`.
//!
//! The process that the master has forked becomes the program: signals of the master are its own, and it ends with the master.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use surus_log::Log;
use surus_master::Companion;

use crate::config::{Config, Sidecar};
use crate::queue;

/// As a shell's, for a command that cannot be run.
const NOT_RUN: i32 = 127;

pub(crate) fn companions(config: &Config) -> impl Iterator<Item = Companion<'_>> {
    let all = config.processes.iter();
    all.flat_map(move |sidecar| {
        (1..=sidecar.instances).map(move |number| Companion {
            name: match sidecar.instances {
                1 => sidecar.name.clone(),
                _ => format!("{}.{number}", sidecar.name),
            },
            on_demand: false,
            outlives_workers: false,
            reloads: sidecar.reloads,
            always: sidecar.always,
            run: Box::new(move || become_program(config, sidecar)),
        })
    })
}

/// Returns only if that does not work.
fn become_program(config: &Config, sidecar: &Sidecar) -> i32 {
    let error = match command(config, sidecar) {
        Ok(mut command) => command.exec(),
        Err(error) => error,
    };
    surus_log::say!("process {}: {:?}: {error}", sidecar.name, sidecar.command);
    NOT_RUN
}

fn command(config: &Config, sidecar: &Sidecar) -> io::Result<Command> {
    let (program, arguments) = sidecar
        .command
        .split_first()
        .ok_or(io::ErrorKind::InvalidInput)?;
    let own = std::env::current_exe();
    let program = match own {
        Ok(own) if program == "surus" => own,
        _ => program.into(),
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(&sidecar.folder)
        .stdin(Stdio::null())
        .stdout(output(config.error_log.as_deref())?)
        .stderr(output(config.error_log.as_deref())?);
    if let Some(folder) = queue::folder_of(&config.app) {
        command.env("SURUS_QUEUE_FOLDER", folder);
    }
    Ok(command)
}

/// Where the server's own messages go.
fn output(log: Option<&Path>) -> io::Result<Stdio> {
    Ok(match log {
        // The master has opened it, and perhaps may what this user may not.
        Some(path) => match surus_log::copy(Log::Error) {
            Some(file) => file.into(),
            None => OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)?
                .into(),
        },
        None => io::stderr().as_fd().try_clone_to_owned()?.into(),
    })
}
