//! Addresses of what is fetched over HTTPS.

use axum::http::Uri;
use axum::http::uri::Scheme;

/// The document of an issuer that says where its keys are, below the issuer's own address (OpenID Connect Discovery 1.0, 4).
const DISCOVERY: &str = "/.well-known/openid-configuration";

/// Whether a setting that may also be a path is meant as a URL.
pub(crate) fn is_url(text: &str) -> bool {
    text.contains("://")
}

/// Reads an address: https, a host, and nothing that a request would not send.
pub(crate) fn parse(text: &str) -> Option<Uri> {
    let uri = text.parse::<Uri>().ok().filter(|_| !text.contains('#'))?;
    let names_host = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'))
        && uri.host().is_some_and(|host| !host.is_empty());
    (uri.scheme() == Some(&Scheme::HTTPS) && names_host).then_some(uri)
}

/// Returns where an issuer tells of itself.
pub(crate) fn discovery(issuer: &str) -> Option<Uri> {
    parse(issuer).filter(|uri| uri.query().is_none())?;
    parse(&format!("{}{DISCOVERY}", issuer.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_https_and_names_a_host() {
        for good in ["https://id.example", "https://id.example:8443/keys?v=1", "https://[2001:db8::1]/keys"] {
            assert!(parse(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "keys.json",
            "http://id.example/keys",
            "https://",
            "https:///keys",
            "https://:443/keys",
            "https://ann:secret@id.example/keys",
            "https://id.example/keys#1",
            "https://id.example/a b",
            "ftp://id.example/",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_issuer_tells_of_itself_below_its_own_address() {
        for (issuer, found) in [
            ("https://id.example", "https://id.example/.well-known/openid-configuration"),
            ("https://id.example/", "https://id.example/.well-known/openid-configuration"),
            ("https://id.example/realms/a", "https://id.example/realms/a/.well-known/openid-configuration"),
        ] {
            assert_eq!(discovery(issuer).map(|uri| uri.to_string()).as_deref(), Some(found));
        }
        assert_eq!(discovery("https://id.example/?a=b"), None);
        assert_eq!(discovery("http://id.example/"), None);
    }
}
