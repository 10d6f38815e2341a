//! The file that keeps the jobs. Records are added at its end; when most of it is about jobs that are gone, it is written anew.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::record::{Contents, Record};

const NAME: &str = "jobs.log";
/// Written anew above this size, if less than half of it is needed.
const LEAST: u64 = 8 << 20;

#[derive(Debug)]
pub(crate) struct Log {
    folder: PathBuf,
    file: File,
    /// Whole records.
    length: u64,
    /// Of it, on disk.
    synced: u64,
    /// Records that must be written, and could not be so far.
    owed: Vec<u8>,
    /// The folder has the file under its name also after a loss of power.
    is_named: bool,
}

impl Log {
    /// Opens or creates it, and reads what it has. Says in the server's log what it could not read.
    pub(crate) fn open(folder: &Path) -> io::Result<(Log, Vec<Record>)> {
        let path = folder.join(NAME);
        let mut file = open(&path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let contents = Contents::read(&bytes);
        let shown = path.display();
        if contents.torn > 0 {
            surus_log::say!(
                "{shown}: the last {} bytes were not written to their end, and are left out",
                contents.torn
            );
        }
        let length = contents.length as u64;
        let mut log = Log {
            folder: folder.to_owned(),
            file,
            length,
            synced: length,
            owed: Vec::new(),
            is_named: true,
        };
        if !log.leave_damage_behind(&path, &contents, &bytes) && contents.torn > 0 {
            log.file.set_len(length)?;
        }
        log.file.sync_all()?;
        File::open(folder)?.sync_all()?;
        Ok((log, contents.records))
    }

    /// Keeps a damaged file under another name, and writes it anew: otherwise each owner would find the damage again. Returns whether the
    /// file is a new one.
    fn leave_damage_behind(&mut self, path: &Path, contents: &Contents, bytes: &[u8]) -> bool {
        if contents.damaged == 0 {
            return false;
        }
        let copy = self
            .folder
            .join(format!("{NAME}.damaged-{}", crate::now() / 1000));
        let done = set_aside(path, &copy, bytes)
            .and_then(|()| self.rewrite(contents.records.iter().cloned()));
        let kept = match &done {
            Ok(()) => format!("The file as it was: {}", copy.display()),
            Err(error) => {
                let _ = fs::remove_file(&copy);
                format!("They stay in the file, which cannot be written anew: {error}")
            }
        };
        surus_log::say!(
            "{}: {} bytes are damaged; the jobs in them are lost, all others are here. {kept}",
            path.display(),
            contents.damaged
        );
        done.is_ok()
    }

    /// A record that is written with the next ones; if that fails, with those after them.
    pub(crate) fn owe(&mut self, record: &Record) {
        record.write(&mut self.owed);
    }

    /// Writes what is owed.
    pub(crate) fn write_owed(&mut self) -> io::Result<()> {
        if !self.owed.is_empty() {
            let owed = std::mem::take(&mut self.owed);
            let written = self.write(&owed);
            if written.is_err() {
                self.owed = owed;
                return written;
            }
        }
        Ok(())
    }

    /// Writes these bytes, or nothing.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self
            .file
            .seek(SeekFrom::Start(self.length))
            .and_then(|_| self.file.write_all(bytes));
        match written {
            Ok(()) => self.length += bytes.len() as u64,
            // Otherwise records that follow would come after half a record.
            Err(_) => self.file.set_len(self.length)?,
        }
        written
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.synced == self.length && self.is_named
    }

    /// Returns when all that was written is on disk.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if self.synced != self.length {
            self.file.sync_data()?;
            self.synced = self.length;
        }
        if !self.is_named {
            File::open(&self.folder)?.sync_all()?;
            self.is_named = true;
        }
        Ok(())
    }

    /// Whether it is to be written anew, if jobs need about this many bytes.
    pub(crate) fn is_wasteful(&self, needed: u64) -> bool {
        self.length > LEAST && self.length / 2 > needed
    }

    /// Writes it anew, with these records only. It is complete whatever the result.
    pub(crate) fn rewrite(&mut self, records: impl Iterator<Item = Record>) -> io::Result<()> {
        let path = self.folder.join(format!("{NAME}.new"));
        let _ = fs::remove_file(&path);
        let written = self.write_new(&path, records);
        match written {
            Ok((file, length)) => {
                self.file = file;
                self.length = length;
                self.synced = length;
                self.is_named = false;
                self.owed.clear();
                self.sync()
            }
            Err(error) => {
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    fn write_new(
        &self,
        path: &Path,
        records: impl Iterator<Item = Record>,
    ) -> io::Result<(File, u64)> {
        let file = open(path)?;
        let mut out = io::BufWriter::with_capacity(1 << 20, &file);
        let (mut length, mut bytes) = (0, Vec::new());
        for record in records {
            bytes.clear();
            record.write(&mut bytes);
            out.write_all(&bytes)?;
            length += bytes.len() as u64;
        }
        out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        fs::rename(path, self.folder.join(NAME))?;
        Ok((file, length))
    }
}

/// Keeps the file as it is under another name, also after the log is written anew. Without a copy if possible: the disk may be full.
fn set_aside(path: &Path, copy: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::hard_link(path, copy) {
        // A file system that has none.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            let mut file = open(copy)?;
            file.write_all(bytes)?;
            file.sync_all()
        }
        done => done,
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Id;

    #[test]
    fn what_was_torn_is_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        let ids: Vec<Id> = (0..3).map(|_| Id::new()).collect();
        let (mut log, records) = Log::open(folder.path()).expect("a log");
        assert!(records.is_empty());
        for &id in &ids[..2] {
            log.owe(&Record::Done { id });
            log.write_owed().expect("room");
        }
        log.file.set_len(log.length - 3).expect("room");
        let (mut log, records) = Log::open(folder.path()).expect("a log");
        assert_eq!(records.len(), 1);
        log.owe(&Record::Done { id: ids[2] });
        log.write_owed().expect("room");
        log.sync().expect("a disk");
        let (mut log, records) = Log::open(folder.path()).expect("a log");
        let found = |record: &Record| matches!(record, Record::Done { id } if *id == ids[2]);
        assert!(records.len() == 2 && found(&records[1]), "{records:?}");
        log.rewrite(records.into_iter().skip(1)).expect("room");
        let (_, records) = Log::open(folder.path()).expect("a log");
        assert!(records.len() == 1 && found(&records[0]), "{records:?}");
    }

    #[test]
    fn a_damaged_file_is_kept_once_and_read_by_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let (mut log, _) = Log::open(folder.path()).expect("a log");
        for _ in 0..3 {
            log.owe(&Record::Done { id: Id::new() });
            log.write_owed().expect("room");
        }
        let path = folder.path().join(NAME);
        let mut bytes = fs::read(&path).expect("a log");
        bytes[15] ^= 1;
        // Half a record.
        bytes.extend_from_within(..20);
        fs::write(&path, &bytes).expect("room");
        for _ in 0..3 {
            let (_, records) = Log::open(folder.path()).expect("a log");
            assert_eq!(records.len(), 2);
            let entries = fs::read_dir(folder.path()).expect("a folder");
            let paths = entries.map(|entry| entry.expect("an entry").path());
            let copies: Vec<PathBuf> = paths.filter(|other| *other != path).collect();
            assert_eq!(copies.len(), 1, "{copies:?}");
            assert_eq!(fs::read(&copies[0]).expect("a copy"), bytes);
            let mode = copies[0].metadata().expect("a file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}
