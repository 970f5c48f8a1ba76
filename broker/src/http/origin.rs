//! Web pages of elsewhere.
//!
//! A browser lets any page send requests to loopback addresses and open WebSockets there. While nobody has to say
//! who they are, such a page could read positions and publish. So a request with an `Origin` is carried out only for
//! pages of this machine, of the origins in the settings, and, where the broker is open to others anyway or wants tokens,
//! which a page has to have been given, its own.

use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};

use crate::config::Config;
use crate::refusal::Refusal;

/// The origins whose pages may talk to the broker.
pub(crate) struct Origins {
    allowed: Vec<String>,
    /// Whether pages that the broker itself served elsewhere are fine.
    own: bool,
}

/// An origin that is allowed.
pub(crate) struct Allowed(HeaderValue);

impl Origins {
    pub(crate) fn new(config: &Config) -> Self {
        let listed =
            config.server.allowed_origins.split(',').map(str::trim).filter(|origin| !origin.is_empty());
        let allowed = listed.map(|origin| origin.trim_end_matches('/').to_owned()).collect();
        Self { allowed, own: config.server.insecure || config.wants_tokens() }
    }

    /// The request's origin, if it has one.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<Option<Allowed>, Refusal> {
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(None) };
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let allowed = origin.to_str().is_ok_and(|origin| {
            is_loopback(origin)
                || self.allowed.iter().any(|one| one == origin)
                || (self.own && host.is_some_and(|host| origin.split("://").nth(1) == Some(host)))
        });
        if allowed {
            Ok(Some(Allowed(origin.clone())))
        } else {
            Err(Refusal::ForeignOrigin(String::from_utf8_lossy(origin.as_bytes()).into_owned()))
        }
    }
}

fn is_loopback(origin: &str) -> bool {
    let Ok(uri) = origin.parse::<Uri>() else { return false };
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return false;
    }
    let Some(host) = uri.host() else { return false };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
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

    fn allows(allowed: &str, insecure: bool, origin: &'static str) -> bool {
        let mut config = Config::default();
        config.server.allowed_origins = allowed.to_owned();
        config.server.insecure = insecure;
        let mut headers = HeaderMap::new();
        headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
        headers.insert(header::HOST, HeaderValue::from_static("broker.example:7070"));
        Origins::new(&config).check(&headers).is_ok()
    }

    #[test]
    fn pages_of_elsewhere_are_refused() {
        for origin in ["http://localhost:3000", "http://127.0.0.1", "https://[::1]:8443"] {
            assert!(allows("", false, origin), "{origin}");
        }
        for origin in ["null", "http://evil.example", "http://localhost.evil.example", "file://localhost"] {
            assert!(!allows("", false, origin), "{origin}");
        }
        assert!(allows("https://a.example, https://b.example/", false, "https://b.example"));
        assert!(!allows("", false, "http://broker.example:7070"));
        assert!(allows("", true, "http://broker.example:7070"));
    }
}
