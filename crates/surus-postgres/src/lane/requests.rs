//! Statements on their way to the server.

use std::{io, rc::Rc};

use postgres_protocol::message::frontend;

use super::{
    answers::{Sent, What},
    driver::{Driver, End},
    Job,
};
use crate::{failure::Failure, slot::Buffer, statement::Statement};

impl Driver {
    pub(super) fn send(&mut self, job: Job) {
        if let Some(statement) = self.statements.find(&job.known.sql) {
            return self.run(job, statement);
        }
        for sent in &mut self.sent {
            if let What::Prepare { sql, jobs, .. } = &mut sent.what {
                if *sql == job.known.sql {
                    return jobs.push(job);
                }
            }
        }
        self.prepared += 1;
        let name = format!("s{}", self.prepared);
        let before = self.output.len();
        if let Err(error) = self.write_prepare(&name, &job.known.sql) {
            self.output.truncate(before);
            return self.answer(&job, Err(Failure::usage(error.to_string())));
        }
        self.sent.push_back(Sent {
            what: What::Prepare {
                name,
                sql: job.known.sql.clone(),
                parameters: Vec::new(),
                columns: Vec::new(),
                jobs: vec![job],
            },
            failure: None,
        });
    }

    fn write_prepare(&mut self, name: &str, sql: &str) -> io::Result<()> {
        frontend::parse(name, sql, [], &mut self.output)?;
        frontend::describe(b'S', name, &mut self.output)?;
        frontend::sync(&mut self.output);
        Ok(())
    }

    pub(super) fn run(&mut self, job: Job, statement: Rc<Statement>) {
        let before = self.output.len();
        match self.write_run(&job, &statement) {
            Ok(()) => self.sent.push_back(Sent {
                what: What::Query {
                    job,
                    statement,
                    data: Buffer::new(self.client.clone()),
                    count: 0,
                    affected: 0,
                    rolled_back: false,
                    has_begun: false,
                },
                failure: None,
            }),
            Err(failure) => {
                self.output.truncate(before);
                self.answer(&job, Err(failure));
            }
        }
    }

    fn write_run(&mut self, job: &Job, statement: &Statement) -> Result<(), Failure> {
        let (wanted, given) = (&statement.parameters, &job.parameters);
        if wanted.len() != given.len() {
            return Err(Failure::usage(format!(
                "The statement has {} parameters, and {} were given",
                wanted.len(),
                given.len()
            )));
        }
        let pairs = || given.iter().zip(wanted);
        for (number, (value, &kind)) in pairs().enumerate() {
            if let Some(why) = value.refusal(kind) {
                return Err(Failure::usage(format!("${} {why}", number + 1)));
            }
        }
        let formats = pairs().map(|(value, &kind)| value.format(kind));
        let results = statement.columns.iter().map(|it| i16::from(it.binary));
        let written = frontend::bind(
            "",
            &statement.name,
            formats,
            pairs(),
            |(value, &kind), to| Ok(value.write(kind, to)),
            results,
            &mut self.output,
        );
        if written.is_err() {
            return Err(Failure::usage(
                "The parameters are larger than a message may be",
            ));
        }
        frontend::execute("", 0, &mut self.output)?;
        match job.pipe {
            // A Sync here would be ignored within the COPY, but not where it fails before it reads: the pipe sends the only one.
            Some(_) => frontend::flush(&mut self.output),
            None => frontend::sync(&mut self.output),
        }
        Ok(())
    }

    pub(super) fn close(&mut self, statement: &Statement) -> Result<(), End> {
        frontend::close(b'S', &statement.name, &mut self.output)?;
        frontend::sync(&mut self.output);
        self.sent.push_back(Sent {
            what: What::Close,
            failure: None,
        });
        Ok(())
    }
}
