//! `surus queue`: the jobs of a running server, for its operator.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;
use surus_queue::{Client, Id, Question};

use super::place::{folder, NAME};
use crate::cli::{QueueArgs, QueueCommand, ServeArgs};
use crate::config::Config;
use crate::{event_loop, failed, misconfigured, print};

pub(crate) fn run(arguments: &QueueArgs) -> ExitCode {
    let found = std::env::var_os("SURUS_QUEUE_FOLDER").filter(|_| arguments.path.is_none());
    let folder = match found {
        Some(folder) => folder.into(),
        None => {
            let serve = ServeArgs {
                path: arguments.path.clone().unwrap_or_else(|| ".".into()),
                ..ServeArgs::default()
            };
            let config = Config::resolve(&serve).map_err(|error| error.to_string());
            match config.and_then(|config| folder(&config.app)) {
                Ok(folder) => folder,
                Err(error) => return misconfigured(&error),
            }
        }
    };
    let (id, queue) = match selected(&arguments.what) {
        Ok(selected) => selected,
        Err(error) => return misconfigured(&error),
    };
    let question = match &arguments.what {
        None => Question::Counts,
        Some(QueueCommand::List { .. }) => Question::List {
            queue,
            failed: false,
        },
        Some(QueueCommand::Failed { .. }) => Question::List {
            queue,
            failed: true,
        },
        Some(QueueCommand::Streams) => Question::Streams { stream: None },
        Some(QueueCommand::Batches) => Question::Batches { id: None },
        Some(QueueCommand::Retry { .. }) => Question::Retry { id, queue },
        Some(QueueCommand::Forget { .. }) => Question::Forget { id, queue },
    };
    let answer = event_loop::run(async {
        let client = Client::new(folder, || ());
        client.ask(question).await
    });
    match answer {
        Ok(Ok(text)) => {
            let answer: Value = serde_json::from_str(&text).unwrap_or_default();
            if arguments.json {
                print(&format!("{answer}\n"));
            } else {
                print(&shown(&arguments.what, &answer));
            }
            ExitCode::SUCCESS
        }
        Ok(Err(error)) => failed(&error),
        Err(error) => failed(&error),
    }
}

/// For an answer that is only a part of one.
const SHORTLY: Duration = Duration::from_secs(1);

/// How many jobs the queues of a server have, as its process with the jobs knows; none if it does not run, or does not say.
pub(crate) fn counts(status: &Value) -> Option<Value> {
    let mut processes = status["processes"].as_array()?.iter();
    processes.find(|process| process["process"] == NAME && process["state"] == "running")?;
    let folder = PathBuf::from(status["queue_folder"].as_str()?);
    let answer = event_loop::run(async {
        let client = Client::new(folder, || ());
        tokio::time::timeout(SHORTLY, client.ask(Question::Counts)).await
    });
    let text = answer.ok()?.ok()?.ok()?;
    let mut answer: Value = serde_json::from_str(&text).ok()?;
    Some(answer["queues"].take())
}

/// One job, or the jobs of one queue.
fn selected(what: &Option<QueueCommand>) -> Result<(Option<Id>, Option<String>), String> {
    match what {
        None | Some(QueueCommand::Batches | QueueCommand::Streams) => Ok((None, None)),
        Some(QueueCommand::List { queue } | QueueCommand::Failed { queue }) => {
            Ok((None, queue.clone()))
        }
        Some(QueueCommand::Retry { which } | QueueCommand::Forget { which }) => {
            if which == "all" {
                return Ok((None, None));
            }
            match which.parse() {
                Ok(id) => Ok((Some(id), None)),
                Err(_) => Ok((None, Some(which.clone()))),
            }
        }
    }
}

fn shown(what: &Option<QueueCommand>, answer: &Value) -> String {
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    match what {
        None => {
            let mut lines = format!(
                "{:<24} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
                "QUEUE", "WAITING", "DELAYED", "RUNNING", "FAILED", "DONE"
            );
            for queue in answer["queues"].as_array().into_iter().flatten() {
                let number = |key: &str| queue[key].as_u64().unwrap_or(0);
                lines += &format!(
                    "{:<24} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
                    text(&queue["queue"]),
                    number("waiting"),
                    number("delayed"),
                    number("running"),
                    number("failed"),
                    number("done")
                );
            }
            lines
        }
        Some(QueueCommand::List { .. } | QueueCommand::Failed { .. }) => {
            let jobs = answer.as_array().into_iter().flatten();
            let line = |job: &Value| {
                let error = job["error"].as_str().unwrap_or_default().lines().next();
                let progress = job["progress"].as_f64();
                let progress =
                    progress.map_or_else(String::new, |done| format!(" {:.0}%", done * 100.0));
                format!(
                    "{}  {}  {}{progress}  attempts {}  {}\n",
                    text(&job["id"]),
                    text(&job["queue"]),
                    text(&job["state"]),
                    job["attempts"],
                    error.unwrap_or_default()
                )
            };
            jobs.map(line).collect()
        }
        Some(QueueCommand::Streams) => {
            let streams = answer.as_array().into_iter().flatten();
            let lines = |stream: &Value| {
                let (entries, last) = (&stream["entries"], &stream["last"]);
                let name = text(&stream["stream"]);
                let mut lines = format!("{name}  entries {entries}  last {last}\n");
                for group in stream["groups"].as_array().into_iter().flatten() {
                    let (left, read) = (&group["left"], &group["read"]);
                    let name = text(&group["group"]);
                    lines += &format!("  {name}  left {left}  of which read {read}\n");
                }
                lines
            };
            streams.map(lines).collect()
        }
        Some(QueueCommand::Batches) => {
            let batches = answer.as_array().into_iter().flatten();
            let line = |batch: &Value| {
                format!(
                    "{}  jobs {}  done {}  failed {}  forgotten {}\n",
                    text(&batch["id"]),
                    batch["total"],
                    batch["done"],
                    batch["failed"],
                    batch["forgotten"]
                )
            };
            batches.map(line).collect()
        }
        Some(QueueCommand::Retry { .. }) => {
            let again = format!("{} jobs run again\n", answer["again"]);
            match answer["blocked"].as_u64().unwrap_or(0) {
                0 => again,
                blocked => format!(
                    "{again}{blocked} stay failed, since another job with the same unique key waits or runs\n"
                ),
            }
        }
        Some(QueueCommand::Forget { .. }) => format!("{answer} jobs were forgotten\n"),
    }
}
