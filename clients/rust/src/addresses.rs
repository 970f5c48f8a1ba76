//! Where the brokers of a cluster are, of which one carries out requests.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Error;

#[derive(Debug)]
pub(crate) struct Addresses {
    /// URLs without a slash at their ends, at least one.
    pub(crate) all: Vec<String>,
    /// The one in use.
    at: AtomicUsize,
}

impl Addresses {
    /// URLs of brokers: http, https, ws or wss, with a path where a proxy has put it at one.
    pub(crate) fn new(urls: &[String]) -> Result<Self, Error> {
        let all = urls.iter().map(|url| address(url)).collect::<Result<_, _>>()?;
        Ok(Self { all, at: AtomicUsize::new(0) })
    }

    pub(crate) fn current(&self) -> usize {
        self.at.load(Ordering::Relaxed)
    }

    /// Goes on to the next one, unless this one has been left already.
    pub(crate) fn leave(&self, at: usize) {
        let next = (at + 1) % self.all.len();
        _ = self.at.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed);
    }
}

fn address(url: &str) -> Result<String, Error> {
    let address = match url.strip_prefix("ws") {
        Some(rest) => format!("http{rest}"),
        None => url.to_owned(),
    };
    let address = address.trim_end_matches('/').to_owned();
    let parsed = reqwest::Url::parse(&address).ok();
    if parsed.as_ref().is_some_and(|parsed| !parsed.username().is_empty() || parsed.password().is_some()) {
        let what = "the url of a broker has no user and no password in it: who one is a token says";
        return Err(Error::Invalid(what.to_owned()));
    }
    if !parsed.as_ref().is_some_and(is_address) {
        let meant = format!("http://{url}");
        let guessed = !url.contains("://") && reqwest::Url::parse(&meant).as_ref().is_ok_and(is_address);
        let hint = if guessed { format!(" (is {meant} meant?)") } else { String::new() };
        return Err(Error::Invalid(format!(
            "the url of a broker begins with http://, https://, ws:// or wss:// and has no query: {url}{hint}"
        )));
    }
    Ok(address)
}

fn is_address(url: &reqwest::Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.fragment().is_none()
}
