//! Where the brokers of a cluster are, and which of them serves a client.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::Error;

/// Clients whose brokers are remembered. Beyond that all are forgotten, and learned again.
const HOMES_MAX: usize = 1000;
/// Brokers that one request is sent on to, at most: with more they send it round in circles.
pub(crate) const HOPS_MAX: usize = 3;

#[derive(Debug)]
pub(crate) struct Addresses {
    /// URLs without a slash at their ends, at least one.
    pub(crate) all: Vec<String>,
    /// Locked for look-ups alone.
    found: Mutex<Found>,
}

#[derive(Debug, Default)]
struct Found {
    /// The one in use.
    at: usize,
    /// Where clients are served, by their names as paths have them. These addresses need not be among `all`.
    homes: HashMap<String, String>,
}

impl Addresses {
    /// URLs of brokers: http, https, ws or wss, with a path where a proxy has put it at one.
    pub(crate) fn new(urls: &[String]) -> Result<Self, Error> {
        let all = urls.iter().map(|url| address(url)).collect::<Result<_, _>>()?;
        Ok(Self { all, found: Mutex::default() })
    }

    /// The broker that serves the client of a path, where that is known.
    pub(crate) fn home(&self, path: &str) -> Option<String> {
        self.found().homes.get(client_of(path)?).cloned()
    }

    /// Where a request of this path goes: to the broker that serves its client, else to the one in use.
    pub(crate) fn of(&self, path: &str) -> String {
        self.home(path).unwrap_or_else(|| self.all[self.found().at].clone())
    }

    /// Reads which broker the one at `from` names for a request of this path, and remembers that for the client. `None` where it names no
    /// broker, or where a token would leave TLS.
    pub(crate) fn learn(&self, from: &str, path: &str, refusal: &Error) -> Option<String> {
        let Error::Problem { location: Some(location), .. } = refusal else { return None };
        // Only the address is taken over, and the request stays the same.
        let url = without_query(location).strip_suffix(without_query(path))?;
        let home = address(url).ok()?;
        if has_tls(from) && !has_tls(&home) {
            return None;
        }
        if let Some(client) = client_of(path) {
            let homes = &mut self.found().homes;
            if homes.len() >= HOMES_MAX {
                homes.clear();
            }
            homes.insert(client.to_owned(), home.clone());
        }
        Some(home)
    }

    /// Goes on to the next one, unless this one has been left already. Clients that were served there are looked for anew.
    pub(crate) fn leave(&self, address: &str) {
        let mut found = self.found();
        found.homes.retain(|_, home| home != address);
        if self.all[found.at] == address {
            found.at = (found.at + 1) % self.all.len();
        }
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        // Nothing panics between two consistent states.
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The client of a path, as it is written there.
fn client_of(path: &str) -> Option<&str> {
    path.strip_prefix("/v1/clients/")?.split(['/', '?']).next()
}

fn without_query(url: &str) -> &str {
    url.split('?').next().unwrap_or_default()
}

pub(crate) fn has_tls(address: &str) -> bool {
    address.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
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

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/v1/clients/ann/ws?resume=e1%3A5";

    fn refusal(location: &str) -> Error {
        let problem = r#"{"type": "urn:nearcast:problem:elsewhere"}"#;
        let header = |name: &str| match name {
            "location" => Some(location.to_owned()),
            "content-type" => Some("application/problem+json".to_owned()),
            _ => None,
        };
        crate::problem::of_answer(307, header, problem.as_bytes())
    }

    fn learned(from: &str, location: &str) -> Option<String> {
        let addresses = Addresses::new(&[from.to_owned()]).expect("an address");
        let home = addresses.learn(from, PATH, &refusal(location));
        assert_eq!(addresses.home("/v1/clients/ann"), home);
        assert_eq!(addresses.home("/v1/clients/anna"), None);
        home
    }

    #[test]
    fn a_broker_that_is_named_is_followed_with_tls_or_to_it() {
        let followed = [
            ("http://a", "http://b:7070/v1/clients/ann/ws?resume=e1%3A5", "http://b:7070"),
            ("http://a", "https://b/at/v1/clients/ann/ws", "https://b/at"),
            ("https://a", "https://b/v1/clients/ann/ws", "https://b"),
        ];
        for (from, location, home) in followed {
            assert_eq!(learned(from, location).as_deref(), Some(home), "{location}");
        }
        let refused = [
            ("https://a", "http://b/v1/clients/ann/ws"),
            ("HTTPS://a", "http://b/v1/clients/ann/ws"),
            ("http://a", "ftp://b/v1/clients/ann/ws"),
            ("http://a", "http://eve@b/v1/clients/ann/ws"),
            ("http://a", "/v1/clients/ann/ws"),
            ("http://a", "http://b/v1/clients/bob/ws"),
        ];
        for (from, location) in refused {
            assert_eq!(learned(from, location), None, "{location}");
        }
    }

    #[test]
    fn the_clients_that_are_remembered_have_a_bound() {
        let addresses = Addresses::new(&["http://a".to_owned()]).expect("an address");
        for number in 0..=HOMES_MAX {
            let path = format!("/v1/clients/{number}");
            let refusal = refusal(&format!("http://b{path}"));
            assert_eq!(addresses.learn("http://a", &path, &refusal).as_deref(), Some("http://b"));
        }
        assert_eq!(addresses.home("/v1/clients/0"), None);
        assert_eq!(addresses.of(&format!("/v1/clients/{HOMES_MAX}")), "http://b");
    }
}
