//! Errors of this client.

use std::{fmt, sync::Arc, time::Duration};

use wire::Problem;

use crate::batch::Report;

/// Underlying error.
pub(crate) type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Error of this client. Several calls may fail for the same reason, so it can be cloned. `Debug` reads like `Display`, for that is what
/// `fn main() -> Result<(), Error>` shows to its user.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The broker refuses. Programs decide by [`Problem::code`].
    #[error("{problem}")]
    Problem {
        /// The document that the broker wrote.
        problem: Box<Problem>,
        /// After how long it is worth trying again, where the broker said so.
        retry_after: Option<Duration>,
        /// Address of this request at the broker that carries it out, where the code is `elsewhere`. It is followed; what is left is what leads
        /// nowhere.
        location: Option<String>,
    },
    /// A connection could not be made, or broke. A session tries again by itself; a call over HTTP is the caller's to try again.
    #[error("{reason}")]
    Connection {
        /// The code of the WebSocket's close, where there was one.
        code: Option<u16>,
        /// Why, with what is at the bottom of it.
        reason: String,
        /// The underlying error.
        source: Option<Cause>,
    },
    /// The session is over: the application closed it, or the broker did for good.
    #[error("the session is closed: {reason}")]
    Closed {
        /// The code of the WebSocket's close, where the broker closed it.
        code: Option<u16>,
        /// Why.
        reason: String,
        /// The problem that the broker told before it closed the session.
        problem: Option<Box<Problem>>,
    },
    /// Too many calls of this kind wait for their answer already. Wait for some of them, or call less.
    #[error("{limit} calls wait for their answer already")]
    QueueFull {
        /// How many may wait.
        limit: usize,
    },
    /// An operation has taken longer than it may.
    #[error("{what} took longer than {limit:?}")]
    Timeout {
        /// The operation that took too long.
        what: &'static str,
        /// How long it may take.
        limit: Duration,
        /// The error of the last attempt.
        source: Option<Box<Error>>,
    },
    /// A batch ended before its end. What was done until then stays done.
    #[error("the batch ended at element {index}: {source}")]
    Batch {
        /// The known outcome of the elements before `index`.
        report: Report,
        /// The first element of which nothing is known: it may have been carried out, or not.
        index: u64,
        /// Why.
        source: Box<Error>,
    },
    /// The application has handed over what cannot be sent: an address that is none, or properties that JSON cannot write.
    #[error("{0}")]
    Invalid(String),
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)?;
        if let Self::Timeout { source: Some(source), .. } = self {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl Error {
    /// The problem document, where the broker wrote one.
    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem { problem, .. } => Some(problem),
            Self::Closed { problem, .. } => problem.as_deref(),
            Self::Batch { source, .. } => source.problem(),
            Self::Timeout { source, .. } => source.as_ref()?.problem(),
            Self::Connection { .. } | Self::QueueFull { .. } | Self::Invalid(_) => None,
        }
    }

    /// The code of the problem that the broker wrote, such as `invalid-document`.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.problem().map(Problem::code)
    }

    pub(crate) fn refused(problem: Problem) -> Self {
        Self::Problem { problem: Box::new(problem), retry_after: None, location: None }
    }

    pub(crate) fn closed(reason: &str) -> Self {
        Self::Closed { code: None, reason: reason.to_owned(), problem: None }
    }

    pub(crate) fn connection(
        reason: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        let source: Cause = source.into().into();
        let mut root: &dyn std::error::Error = &*source;
        while let Some(deeper) = root.source() {
            root = deeper;
        }
        let reason = format!("{}: {root}", reason.into());
        Self::Connection { code: None, reason, source: Some(source) }
    }

    pub(crate) fn broken(reason: impl Into<String>) -> Self {
        Self::Connection { code: None, reason: reason.into(), source: None }
    }

    /// Whether the broker is away, so that a takeover or a restart may bring it back soon. One that refuses for its load is there.
    pub(crate) fn is_away(&self) -> bool {
        match self {
            // Without a close, or with that of a broker that stops, or has heard nothing for long.
            Self::Connection { code, .. } => matches!(code, None | Some(1001)),
            // What a proxy says of the broker behind it as well.
            Self::Problem { problem, .. } => {
                [307, 502, 503, 504].contains(&problem.status) && problem.code() != "limit-reached"
            }
            Self::Timeout { .. } => true,
            Self::Closed { .. } | Self::QueueFull { .. } | Self::Batch { .. } | Self::Invalid(_) => false,
        }
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        if let Self::Problem { retry_after, .. } = self { *retry_after } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(status: u16, code: &str) -> Error {
        let document = serde_json::json!({"type": format!("urn:nearcast:problem:{code}"), "status": status});
        Error::refused(crate::problem::of_frame(document))
    }

    fn close(code: u16) -> Error {
        Error::Connection { code: Some(code), reason: "closed".to_owned(), source: None }
    }

    #[test]
    fn a_broker_is_away_or_refuses() {
        let timeout = Error::Timeout { what: "an answer", limit: Duration::from_secs(30), source: None };
        let away = [
            Error::broken("the broker cannot be reached"),
            close(1001),
            timeout,
            problem(503, "recovering"),
            problem(503, "stopping"),
            problem(503, "storage"),
            problem(307, "elsewhere"),
            problem(502, "about:blank"),
        ];
        for error in away {
            assert!(error.is_away(), "{error}");
        }
        let there = [
            close(1013),
            close(4401),
            problem(503, "limit-reached"),
            problem(429, "overloaded"),
            problem(429, "too-many-events"),
            problem(500, "internal"),
            Error::Invalid("something else".to_owned()),
        ];
        for error in there {
            assert!(!error.is_away(), "{error}");
        }
    }
}
