//! Web pages of elsewhere.
//!
//! A browser lets any page send requests to loopback addresses and open WebSockets there. While nobody has to say
//! who they are, such a page could read positions and publish. So a request with an `Origin` is carried out only for
//! pages of this machine, of the origins in the settings, and the broker's own.
//!
//! Which pages are its own is said by `Host`, and what stands there by DNS: a page of a domain whose name is made to lead here while it is
//! open (DNS rebinding) is at home here for the browser, and needs no `Origin` to read. So `Host` has to be an address, a name of
//! this machine, or one in the settings, unless tokens are wanted: a page has to have been given one.

use std::net::{IpAddr, Ipv6Addr};

use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};

use crate::config::Config;
use crate::model::error::ApiError;

/// Where a browser says how far from here the page is that asks.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Paths of probes by load balancers and orchestrators. They say nothing of anybody's, and are answered whatever host the
/// request names.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// The origins whose pages may talk to the broker, and the names by which it is known.
pub(crate) struct Origins {
    allowed: Vec<String>,
    /// Names of this broker besides those of every machine; `None` where any will do.
    hosts: Option<Vec<String>>,
}

/// An origin that is allowed.
pub(crate) struct Allowed(HeaderValue);

impl Origins {
    pub(crate) fn new(config: &Config) -> Self {
        let allowed: Vec<_> = listed(&config.server.allowed_origins)
            .map(|origin| origin.trim_end_matches('/').to_owned())
            .collect();
        let hosts = (!config.wants_tokens()).then(|| {
            let of_origins = allowed.iter().filter_map(|origin| {
                let uri = origin.parse::<Uri>().ok()?;
                Some(uri.host()?.to_ascii_lowercase())
            });
            listed(&config.server.hosts).map(str::to_ascii_lowercase).chain(of_origins).collect()
        });
        Self { allowed, hosts }
    }

    /// The request's origin, if it has one.
    ///
    /// # Errors
    /// When a page of elsewhere asks, or may do so.
    pub(crate) fn check(&self, path: &str, headers: &HeaderMap) -> Result<Option<Allowed>, ApiError> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let foreign_host = hosts.find(|host| !self.is_own_host(host, headers));
        let origin = match headers.get(header::ORIGIN) {
            Some(origin) => Some(self.check_origin(origin, headers, foreign_host.is_none())?),
            None => None,
        };
        if let Some(host) = foreign_host
            && !PROBES.contains(&path)
        {
            return Err(ApiError::ForeignHost(String::from_utf8_lossy(host.as_bytes()).into_owned()));
        }
        let is_private = path.starts_with("/v1/") || path == "/metrics";
        if is_private && origin.is_none() && headers.get(FETCH_SITE).is_some_and(|site| site == "cross-site")
        {
            // Such as an image, of which the page itself sees nothing.
            return Err(ApiError::ForeignOrigin(
                "a page of another site asks, and does not say which (Sec-Fetch-Site: cross-site)".to_owned(),
            ));
        }
        Ok(origin)
    }

    fn check_origin(
        &self,
        origin: &HeaderValue,
        headers: &HeaderMap,
        is_own_host: bool,
    ) -> Result<Allowed, ApiError> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).filter(|_| is_own_host);
        let is_allowed = origin.to_str().is_ok_and(|origin| {
            is_loopback(origin)
                || self.allowed.iter().any(|one| one == origin)
                || host.is_some_and(|host| origin.split("://").nth(1) == Some(host))
        });
        if is_allowed {
            return Ok(Allowed(origin.clone()));
        }
        let origin = String::from_utf8_lossy(origin.as_bytes());
        Err(ApiError::ForeignOrigin(format!(
            "{origin} is not a loopback origin and not in server.allowed_origins"
        )))
    }

    /// Whether a page of this host is one of ours. An address is nobody else's: what can be rebound is a name.
    fn is_own_host(&self, told: &HeaderValue, headers: &HeaderMap) -> bool {
        let Some(own) = &self.hosts else { return true };
        let Some(name) = told.to_str().ok().and_then(name_of) else { return false };
        let name = name.to_ascii_lowercase();
        let name = name.strip_suffix('.').unwrap_or(&name);
        name == "localhost"
            || name.ends_with(".localhost")
            || name.parse::<IpAddr>().is_ok()
            || own.iter().any(|one| one == name)
            // As containers call one another. For browsers somebody in the same network could answer to such a name.
            || (!name.contains('.') && !is_of_browser(headers))
    }
}

/// The elements of a setting with commas between.
fn listed(setting: &str) -> impl Iterator<Item = &str> {
    setting.split(',').map(str::trim).filter(|element| !element.is_empty())
}

/// The name or the address in a `Host`, whichever the port.
fn name_of(host: &str) -> Option<&str> {
    if let Some(rest) = host.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        let is_right = address.parse::<Ipv6Addr>().is_ok() && (port.is_empty() || port.starts_with(':'));
        return is_right.then_some(address);
    }
    Some(host.split_once(':').map_or(host, |(name, _)| name))
}

/// Whether a request has what no page can keep its browser from sending.
fn is_of_browser(headers: &HeaderMap) -> bool {
    let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
    headers.contains_key(header::ACCEPT_LANGUAGE)
        || headers.contains_key(FETCH_SITE)
        || agent.is_some_and(|agent| agent.starts_with("Mozilla/"))
}

fn is_loopback(origin: &str) -> bool {
    let Ok(uri) = origin.parse::<Uri>() else { return false };
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return false;
    }
    let Some(host) = uri.host() else { return false };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl Allowed {
    /// Lets the page read the response.
    pub(crate) fn allow(self, headers: &mut HeaderMap) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, self.0);
        headers.append(header::VARY, HeaderValue::from_static("origin"));
        headers.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("retry-after, www-authenticate"),
        );
    }

    /// Answers what a browser asks before it sends what a form could not.
    pub(crate) fn preflight(&self, asked: &HeaderMap) -> Response {
        let mut response = StatusCode::NO_CONTENT.into_response();
        let headers = response.headers_mut();
        Self(self.0.clone()).allow(headers);
        let methods = HeaderValue::from_static("GET, POST, PUT, DELETE");
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
        if let Some(names) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
        }
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(allowed: &str, hosts: &str, wants_tokens: bool) -> Origins {
        let mut config = Config::default();
        config.server.allowed_origins = allowed.to_owned();
        config.server.hosts = hosts.to_owned();
        if wants_tokens {
            config.auth.mode = crate::config::AuthMode::Jwt;
        }
        Origins::new(&config)
    }

    fn headers(told: &[(&'static str, &str)]) -> HeaderMap {
        let header = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        told.iter().map(header).collect()
    }

    #[test]
    fn pages_of_elsewhere_are_refused() {
        let allows = |allowed, hosts, tokens, origin| {
            let told = headers(&[("host", "broker.example:7070"), ("origin", origin)]);
            match origins(allowed, hosts, tokens).check("/healthz", &told) {
                Ok(origin) => origin.is_some(),
                Err(refusal) => {
                    assert_eq!(refusal.code(), "foreign-origin");
                    false
                }
            }
        };
        for origin in ["http://localhost:3000", "http://127.0.0.1", "https://[::1]:8443"] {
            assert!(allows("", "", false, origin), "{origin}");
        }
        for origin in ["null", "http://evil.example", "http://localhost.evil.example", "file://localhost"] {
            assert!(!allows("", "", false, origin), "{origin}");
        }
        assert!(allows("https://a.example, https://b.example/", "", false, "https://b.example"));
        // Its own pages, by a name that is its own; where a token is wanted, by any.
        assert!(!allows("", "", false, "http://broker.example:7070"));
        assert!(allows("", "other.example, Broker.example", false, "http://broker.example:7070"));
        assert!(!allows("", "broker.example", false, "http://broker.example:7071"));
        assert!(allows("", "", true, "http://broker.example:7070"));
    }

    #[test]
    fn a_name_that_may_be_anybodys_is_refused() {
        let listed = origins("https://app.example:8443", "broker.example", false);
        let answers = |host| match listed.check("/v1/clients", &headers(&[("host", host)])) {
            Ok(_) => true,
            Err(refusal) => {
                assert_eq!(refusal.code(), "foreign-host");
                false
            }
        };
        for host in [
            "localhost",
            "LOCALHOST:7070",
            "localhost.:7070",
            "a.b.localhost:1",
            "127.0.0.1:7070",
            "127.8.8.8",
            "[::1]:7070",
            "[::1]",
            "192.168.1.7:7070",
            "broker.example",
            "Broker.Example:9",
            "app.example",
            "nearcast:7070",
        ] {
            assert!(answers(host), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:7070",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1.nip.io:7070",
            "x.broker.example",
            "evillocalhost.example",
            "[::1].evil.example",
            "[evil.example]",
            "user@evil.example",
        ] {
            assert!(!answers(host), "{host}");
        }
        let twice = headers(&[("host", "localhost"), ("host", "evil.example")]);
        assert!(listed.check("/", &twice).is_err());
        // A browser is not asked by such a name unless somebody answers to it.
        for (name, value) in
            [("accept-language", ""), ("user-agent", "Mozilla/5.0"), ("sec-fetch-site", "none")]
        {
            assert!(listed.check("/v1/stats", &headers(&[("host", "nearcast"), (name, value)])).is_err());
        }
        let evil = headers(&[("host", "evil.example")]);
        assert!(listed.check("/healthz", &evil).is_ok() && listed.check("/readyz", &evil).is_ok());
        assert!(origins("", "", true).check("/v1/clients", &evil).is_ok());
    }

    #[test]
    fn images_of_other_sites_have_no_effects() {
        let asked =
            |path, told: &[_]| origins("https://a.example", "", false).check(path, &headers(told)).is_ok();
        let own = ("host", "localhost");
        for path in ["/v1/clients/car/events", "/v1/clients", "/metrics"] {
            assert!(!asked(path, &[own, ("sec-fetch-site", "cross-site")]), "{path}");
            assert!(asked(path, &[own, ("sec-fetch-site", "cross-site"), ("origin", "https://a.example")]));
            for site in ["same-origin", "same-site", "none"] {
                assert!(asked(path, &[own, ("sec-fetch-site", site)]), "{path} {site}");
            }
        }
        assert!(asked("/", &[own, ("sec-fetch-site", "cross-site")]), "a link may lead to the console");
    }
}
