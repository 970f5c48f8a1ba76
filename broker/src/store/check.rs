//! Whether a data directory is whole, found out without changing it.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use redb::ReadableDatabase as _;

use super::disk::{Counted, Overlay};
use super::error::StoreError;
use super::format::{Meta, append, open_database, upgrade};
use super::lock::Lock;
use super::recovery::{self, ClientContents, Contents};
use super::shared::guarded;
use super::{store_file, tail, tail_file};
use crate::model::record::BodyId;

/// The contents of a data directory, and its faults.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) counts: Vec<(&'static str, u64)>,
    world: String,
    /// The first of them.
    problems: Vec<String>,
    problems_count: u64,
}

/// Problems beyond these are counted only.
const TOLD_MAX: usize = 50;

impl Report {
    pub(crate) fn is_whole(&self) -> bool {
        self.problems_count == 0
    }

    pub(super) fn tell(&mut self, problem: String) {
        self.problems_count += 1;
        if self.problems.len() < TOLD_MAX {
            self.problems.push(problem);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "damaged: {problem}")?;
        }
        let untold = self.problems_count - self.problems.len() as u64;
        if untold > 0 {
            writeln!(f, "damaged: {untold} more")?;
        }
        if !self.counts.is_empty() {
            writeln!(f, "world: {}", self.world)?;
        }
        for (what, count) in &self.counts {
            writeln!(f, "{what}: {count}")?;
        }
        match self.problems_count {
            0 => write!(f, "all is as it was written"),
            count => write!(f, "{count} damaged"),
        }
    }
}

/// Reads everything in a data directory that no broker has, compares all checksums, and looks at what refers to what.
/// Nothing there is changed, not even what a start would repair after a crash.
///
/// # Errors
/// A directory that cannot be read: not there, in use, of another version.
pub(crate) fn check(dir: &Path) -> Result<Report, StoreError> {
    let path = store_file(dir);
    let overlay = Overlay::open(&path).map_err(|error| StoreError::io("read", &path, &error))?;
    let _lock = Lock::take_existing(dir)?;
    let mut report = Report::default();
    let read = guarded(&path, || {
        let database = open_database(
            Counted { inner: Box::new(overlay), read: Arc::default(), fault: Arc::default() },
            &path,
        )?;
        let of = |error| StoreError::of("read", &path, error);
        upgrade(&database, &path)?;
        let txn = database.begin_read().map_err(|error| of(redb::Error::from(error)))?;
        let Some(meta) = Meta::read(&txn, &path)? else {
            return Err(StoreError::damaged(&path, "there is nothing in it"));
        };
        let last = recovery::last_commit(&txn, &meta).map_err(of)?;
        let tail = tail::rows_after(&tail::bytes(&tail_file(dir))?, last);
        if tail.rest_bytes > 0 {
            report.tell(format!("{}: {}", tail_file(dir).display(), tail::CUT));
        }
        append(&database, &path, &tail.rows)?;
        let txn = database.begin_read().map_err(|error| of(redb::Error::from(error)))?;
        let mut fault = |what| {
            report.tell(what);
            Ok(())
        };
        Ok((recovery::read(&txn, &meta, &path, &mut |_, _| {}, &mut fault)?, meta))
    });
    match read {
        Ok((contents, meta)) => {
            report.world = meta.world;
            links(&contents, &mut report);
        }
        Err(StoreError::Damaged { what, .. }) => report.tell(format!("{}: {what}", path.display())),
        Err(error) => return Err(error),
    }
    Ok(report)
}

/// Looks at what refers to what.
pub(super) fn links(contents: &Contents, report: &mut Report) {
    let Contents { clients, live, bodies, log, .. } = contents;
    let (mut subscriptions, mut standings, mut kept) = (0, 0, 0);
    let mut referred = HashSet::new();
    for live in live {
        referred.insert(live.body);
        if !bodies.contains_key(&live.body) {
            report.tell(format!("the live event {:?} has no text", live.id));
        }
    }
    for client in clients {
        subscriptions += client.subscriptions.len() as u64;
        standings += client.subscriptions.iter().map(|one| one.standings.len() as u64).sum::<u64>();
        kept += client.kept.len() as u64;
        for kept in &client.kept {
            referred.insert(kept.body);
            if !bodies.contains_key(&kept.body) {
                report.tell(format!("offset {} of client {:?} has no text", kept.offset, client.name));
            }
        }
        session(client, report);
    }
    for BodyId(body) in bodies.keys().filter(|body| body.0 >= log.next_body) {
        report.tell(format!("the text {body} has a number that was not given to it"));
    }
    let spare = bodies.keys().filter(|body| !referred.contains(body)).count() as u64;
    report.counts = vec![
        ("last commit", log.last),
        ("commits in the log", log.last - log.folded),
        ("clients", clients.len() as u64),
        ("subscriptions", subscriptions),
        ("standings", standings),
        ("kept matches", kept),
        ("live events", live.len() as u64),
        ("texts of events", bodies.len() as u64),
        ("of these to be removed", spare),
    ];
}

fn session(client: &ClientContents, report: &mut Report) {
    let name = &client.name;
    for (subscription, object) in &client.loose {
        report.tell(format!(
            "client {name:?} has a standing of {object:?} to {subscription:?}, which it has not"
        ));
    }
    if client.session.is_none() && !client.kept.is_empty() {
        report.tell(format!("client {name:?} has kept matches and no session"));
    }
    if let Some(twice) = client.kept.windows(2).find(|pair| pair[0].offset == pair[1].offset) {
        report.tell(format!("offset {} of client {name:?} is there twice", twice[0].offset));
    }
    if let Some(session) = &client.session
        && session.acknowledged > session.offset
    {
        report.tell(format!(
            "client {name:?} acknowledged {}, and its session ends at {}",
            session.acknowledged, session.offset
        ));
    }
}
