//! Why a store cannot be had, as lines for the operator.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use caves_store::RecordError;
use caves_store::json::ImportError;
use thiserror::Error;

use super::file::DiskError;
use super::survey::Survey;

/// Why a store was not opened, exported, imported or put right. Each says how to go on.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Two servers would ruin it.
    #[error("{} is in use by another process", .0.display())]
    InUse(PathBuf),
    /// The system says no.
    #[error("cannot {doing} {}: {reason}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What the system says.
        reason: io::Error,
    },
    /// Some of it cannot be read.
    #[error("{0}")]
    Damaged(Box<Damage>),
    /// Nothing can be made of what is left.
    #[error(
        "{} cannot be repaired: {why}; it was not changed, and a copy is {}: restore a backup",
        path.display(), copy.display()
    )]
    Hopeless {
        /// The file.
        path: PathBuf,
        /// What is missing.
        why: String,
        /// The copy that was made.
        copy: PathBuf,
    },
    /// A newer program has written it.
    #[error(
        "{} has format {found}, this program knows formats up to {known}: run the program that wrote \
         it, or export it there and import it here", path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest that is known.
        known: u32,
    },
    /// It was made by a generator that this program does not have.
    #[error(
        "{} was made by generator {found}, this program has generators up to {known}: run the program \
         that wrote it", path.display()
    )]
    Generator {
        /// The file.
        path: PathBuf,
        /// The world's.
        found: u32,
        /// The newest that is known.
        known: u32,
    },
    /// Numbers mean something else than they did.
    #[error(
        "{} does not fit this program's content: {what}; export it with the program that wrote it, and \
         import that with this one", path.display()
    )]
    Content {
        /// The file.
        path: PathBuf,
        /// Which names and numbers.
        what: String,
    },
    /// A format that nobody migrates.
    #[error("{} has format {found}, and there is no way from it to format {wanted}", path.display())]
    NoWay {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest.
        wanted: u32,
    },
    /// A record of the program's own that could not be read again.
    #[error("{} would hold what cannot be read again: {reason}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Which, and why.
        reason: RecordError,
    },
    /// What was to be put right is not there.
    #[error("there is no {}: nothing to repair", .0.display())]
    Nothing(PathBuf),
    /// Nothing was ever saved.
    #[error("{} holds no world yet", .0.display())]
    Empty(PathBuf),
    /// A world would be written over.
    #[error("{} exists already: move it away first", .0.display())]
    Exists(PathBuf),
    /// The lines of an export.
    #[error("nothing was imported: {0}")]
    Import(#[from] ImportError),
    /// The lines cannot be read.
    #[error("nothing was imported: cannot read line {line}: {reason}")]
    Input {
        /// Counted from 1.
        line: u64,
        /// What the system says.
        reason: io::Error,
    },
    /// The lines cannot be written.
    #[error("not exported: {0}")]
    Output(io::Error),
    /// A record has no form as a line.
    #[error("{} is not exported: {what}", path.display())]
    Unexported {
        /// The file.
        path: PathBuf,
        /// Which record, and why.
        what: String,
    },
}

/// What of a store cannot be read.
#[derive(Debug)]
pub struct Damage {
    pub(super) path: PathBuf,
    /// What redb says of the file as a whole.
    pub(super) structure: Option<String>,
    /// `None` when nothing in it can be read at all.
    pub(super) survey: Option<Survey>,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is damaged", self.path.display())?;
        if let Some(structure) = &self.structure {
            write!(f, " ({structure})")?;
        }
        match &self.survey {
            Some(survey) => write!(f, ": {survey}")?,
            None => f.write_str(": none of it can be read")?,
        }
        f.write_str(
            "; nothing was changed. Restore a backup, or start once with --repair: that keeps a copy, \
             puts right what can be read, and gives up the rest",
        )
    }
}

impl StoreError {
    pub(super) fn system(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |reason| Self::System { path: path.to_owned(), doing, reason }
    }

    /// For a file that has been examined: what it says now is new.
    pub(super) fn disk(path: &Path, doing: &'static str) -> impl FnOnce(DiskError) -> Self {
        move |error| match error {
            DiskError::InUse => Self::InUse(path.to_owned()),
            DiskError::System(reason) => Self::System { path: path.to_owned(), doing, reason },
            DiskError::Damaged(what) => {
                let path = path.to_owned();
                let damage = Damage { path, structure: Some(what), survey: None };
                Self::Damaged(Box::new(damage))
            }
        }
    }

    pub(super) fn record(path: &Path) -> impl FnOnce(RecordError) -> Self {
        move |reason| Self::Record { path: path.to_owned(), reason }
    }
}
