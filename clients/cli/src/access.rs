//! Which broker, and by which token.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::Args;
use nearcast_client::broker::BrokerBuilder;
use nearcast_client::{Broker, Connect, Error, Problem, connect};

/// Holds a token, where no file does. There is no flag for it, for others can read what one types.
const TOKEN_VARIABLE: &str = "NEARCAST_TOKEN";

/// How long a broker that was there may be away, where nobody says.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked whether there is a broker by now.
const KNOCK_EVERY: Duration = Duration::from_millis(250);

/// How the broker is reached.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Broker")]
pub(crate) struct Access {
    /// Where the broker is
    #[arg(long, value_name = "URL", env = "NEARCAST_URL", default_value = "http://127.0.0.1:7070")]
    url: String,
    /// File with a JSON Web Token, read again when another is needed. Or NEARCAST_TOKEN holds one
    #[arg(long, value_name = "FILE", env = "NEARCAST_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// Certificates of an authority to trust as well, PEM
    #[arg(long, value_name = "FILE", env = "NEARCAST_CA")]
    ca: Option<PathBuf>,
}

/// Source of the token.
enum Token {
    Fixed(String),
    File(PathBuf),
}

impl Access {
    /// Its URL, for messages.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// An error as text: the refusal of the broker, or that there is no broker at the URL.
    pub(crate) fn told(&self, error: &Error) -> anyhow::Error {
        if error.problem().is_some() {
            told(error)
        } else {
            anyhow::anyhow!("{}: {}{}", self.url, in_words(error), hint(&self.url, error))
        }
    }

    /// The broker's calls over HTTP.
    pub(crate) fn broker(&self) -> anyhow::Result<Broker> {
        self.open(Broker::builder(&self.url))
    }

    /// The broker, with `limit` as the time in which each request has to be answered.
    pub(crate) fn broker_within(&self, limit: Duration) -> anyhow::Result<Broker> {
        self.open(Broker::builder(&self.url).request_timeout(limit))
    }

    fn open(&self, mut at: BrokerBuilder) -> anyhow::Result<Broker> {
        at = match self.token()? {
            None => at,
            Some(Token::Fixed(token)) => at.token(token),
            Some(Token::File(path)) => at.token_provider(move || read_again(path.clone())),
        };
        if let Some(pem) = self.authority()? {
            at = at.root_certificates(pem);
        }
        at.open().map_err(|error| told(&error))
    }

    /// A session of a client's that is about to begin.
    pub(crate) fn session(&self, client: &str) -> anyhow::Result<Connect> {
        let mut session = connect(&self.url, client);
        session = match self.token()? {
            None => session,
            Some(Token::Fixed(token)) => session.token(token),
            Some(Token::File(path)) => session.token_provider(move || read_again(path.clone())),
        };
        Ok(match self.authority()? {
            None => session,
            Some(pem) => session.root_certificates(pem),
        })
    }

    /// Waits for a broker to be there. What does not get through later is tried for a while in any case, but a wrong address is
    /// told at once where nobody asked for patience.
    pub(crate) async fn reach(&self, broker: &Broker, patience: Option<Duration>) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            match broker.ready().await {
                Err(error) if !passes(&error) => {
                    if error.problem().is_some() || begun.elapsed() >= patience.unwrap_or_default() {
                        return Err(self.told(&error));
                    }
                    tokio::time::sleep(KNOCK_EVERY).await;
                }
                Ok(_) | Err(_) => return Ok(()),
            }
        }
    }

    /// The client that is meant: the one that is named, else the one that the token is of.
    pub(crate) fn client(&self, named: Option<String>) -> anyhow::Result<Option<String>> {
        if named.is_some() {
            return Ok(named);
        }
        let token = match self.token()? {
            None => return Ok(None),
            Some(Token::Fixed(token)) => token,
            Some(Token::File(path)) => read(&path)?,
        };
        let claims = token.split('.').nth(1).and_then(|claims| URL_SAFE_NO_PAD.decode(claims).ok());
        let claims = claims.and_then(|claims| serde_json::from_slice::<serde_json::Value>(&claims).ok());
        Ok(claims.and_then(|claims| claims["sub"].as_str().map(str::to_owned)))
    }

    /// The one in a file goes before the one in the environment, for a flag says more.
    fn token(&self) -> anyhow::Result<Option<Token>> {
        if let Some(path) = &self.token_file {
            read(path)?; // so that a missing file is reported now
            return Ok(Some(Token::File(path.clone())));
        }
        let token = std::env::var(TOKEN_VARIABLE).unwrap_or_default();
        Ok((!token.trim().is_empty()).then(|| Token::Fixed(token.trim().to_owned())))
    }

    fn authority(&self) -> anyhow::Result<Option<Vec<u8>>> {
        let Some(path) = &self.ca else { return Ok(None) };
        std::fs::read(path).map(Some).with_context(|| format!("cannot read {}", path.display()))
    }
}

/// The advice where nobody listens at an address, and where it says TLS and the other side answers without. That is what the system and
/// the TLS library say, wherever among the causes that stands.
fn hint(url: &str, error: &Error) -> String {
    if in_words(error).contains("Connection refused") {
        return format!(" (is `nearcast serve` running at {url}?)");
    }
    match url.strip_prefix("https://") {
        Some(rest) if in_words(error).contains("InvalidContentType") => {
            format!(" (the broker speaks no TLS there: http://{rest}?)")
        }
        _ => String::new(),
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    let token = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(token.trim().to_owned())
}

async fn read_again(path: PathBuf) -> Result<String, io::Error> {
    tokio::fs::read_to_string(path).await.map(|token| token.trim().to_owned())
}

/// An error of the client's in one line, with what is at the bottom of it.
pub(crate) fn told(error: &Error) -> anyhow::Error {
    anyhow::Error::msg(in_words(error))
}

/// An error of the client's as text in one line, with what is at the bottom of it.
pub(crate) fn in_words(error: &Error) -> String {
    match error {
        Error::Connection { reason, source, .. } => {
            let mut root = source.as_ref().map(|source| source.as_ref() as &dyn std::error::Error);
            while let Some(deeper) = root.and_then(|root| root.source()) {
                root = Some(deeper);
            }
            match root.map(ToString::to_string) {
                Some(root) if !reason.ends_with(&root) => format!("{reason}: {root}"),
                Some(_) | None => reason.clone(),
            }
        }
        Error::Problem { problem, .. } => refusal(problem),
        Error::Batch { source, .. } => in_words(source),
        Error::Closed { problem: Some(problem), .. } => {
            format!("the broker ended the session: {}", refusal(problem))
        }
        Error::Timeout { source: Some(source), .. } => format!("{error}: {}", in_words(source)),
        Error::Closed { .. } | Error::QueueFull { .. } | Error::Timeout { .. } | Error::Invalid(_) | _ => {
            error.to_string()
        }
    }
}

/// A problem in words.
pub(crate) fn refusal(problem: &Problem) -> String {
    if problem.status == 401 {
        format!("{problem} (a token comes by --token-file or {TOKEN_VARIABLE})")
    } else {
        problem.to_string()
    }
}

/// Whether an error passes with time: the broker is there, and cannot answer now.
pub(crate) fn passes(error: &Error) -> bool {
    error.problem().is_some_and(|problem| [429, 503].contains(&problem.status))
}
