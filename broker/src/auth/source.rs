//! Where a request has its token.

use std::borrow::Cow;

use axum::http::Uri;
use axum::http::header::{AUTHORIZATION, HeaderMap, SEC_WEBSOCKET_PROTOCOL};

use crate::model::error::ApiError;

/// The subprotocol that frames are, where a client asks for one.
pub(crate) const SUBPROTOCOL: &str = "nearcast";
/// Prefix of a subprotocol that is a token.
const SUBPROTOCOL_TOKEN: &str = "nearcast.bearer.";
/// The parameter of the query that is a token (RFC 6750, 2.3).
const PARAMETER: &str = "access_token";

/// Whether a parameter of a query, with its name, is a token.
pub(crate) fn is_token(parameter: &str) -> bool {
    // The name may be encoded, as it may be where the token is looked for.
    form_urlencoded::parse(parameter.as_bytes()).any(|(name, _)| name == PARAMETER)
}

/// Where a token may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenSource {
    /// The token is in the header `Authorization`.
    Header,
    /// The token is there, in the address, or among the subprotocols: a browser sends no headers of the page's own with what
    /// it opens for good.
    HeaderOrAddress,
}

/// A token as it came. It is a secret: never logged, never shown.
pub(crate) struct Token<'a>(pub(super) Cow<'a, str>);

impl<'a> Token<'a> {
    /// Makes a token of the text of a frame.
    pub(crate) fn told(text: String) -> Self {
        Self(text.into())
    }

    /// Finds the token of a request, if it has one. A request with two tokens means one of them wrongly, and which one cannot
    /// be known.
    pub(crate) fn of(
        headers: &'a HeaderMap,
        uri: &'a Uri,
        whereabouts: TokenSource,
    ) -> Result<Option<Self>, ApiError> {
        let mut found = Vec::new();
        for value in headers.get_all(AUTHORIZATION) {
            let bearer = value.to_str().ok().and_then(bearer);
            found.push(Cow::Borrowed(bearer.ok_or_else(|| ApiError::Unauthenticated {
                detail: "Authorization must be Bearer and a token".to_owned(),
                has_token: true,
            })?));
        }
        if whereabouts == TokenSource::HeaderOrAddress {
            let query = uri.query().unwrap_or_default().as_bytes();
            let told = form_urlencoded::parse(query).filter(|(name, _)| name == PARAMETER);
            found.extend(told.map(|(_, token)| token));
            let protocols = headers.get_all(SEC_WEBSOCKET_PROTOCOL).into_iter();
            let protocols =
                protocols.filter_map(|value| value.to_str().ok()).flat_map(|list| list.split(','));
            found.extend(
                protocols.filter_map(|one| one.trim().strip_prefix(SUBPROTOCOL_TOKEN)).map(Cow::Borrowed),
            );
        }
        let token = found.pop();
        if found.is_empty() {
            return Ok(token.map(Self));
        }
        Err(ApiError::BadRequest("a request has one token, and this one more".to_owned()))
    }
}

/// The token of `Bearer <token>`.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_matches(' '))
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    /// Finds the token of a request with this query and these headers.
    fn find(
        query: &str,
        headers: &[(&str, &str)],
        whereabouts: TokenSource,
    ) -> Result<Option<String>, ApiError> {
        let mut request = Request::get(format!("/v1/clients/c/ws{query}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        Token::of(&parts.headers, &parts.uri, whereabouts)
            .map(|token| token.map(|Token(text)| text.into_owned()))
    }

    #[test]
    fn it_is_in_a_header_and_for_streams_in_the_address_too() {
        use TokenSource::{Header, HeaderOrAddress};
        let token = || Ok(Some("a.b-_.c".to_owned()));
        let protocols = [("sec-websocket-protocol", "nearcast, nearcast.bearer.a.b-_.c")];
        for header in ["Bearer a.b-_.c", "bearer a.b-_.c", "BEARER  a.b-_.c "] {
            assert_eq!(find("", &[("authorization", header)], Header), token());
            assert_eq!(find("?resume=a:1", &[("authorization", header)], HeaderOrAddress), token());
        }
        assert_eq!(find("?resume=a:1&access_token=a.b-_.c", &[], HeaderOrAddress), token());
        assert_eq!(find("?access_token=a%2Eb-_.c", &[], HeaderOrAddress), token());
        assert_eq!(find("", &protocols, HeaderOrAddress), token());
        assert_eq!(find("?access_token=a.b-_.c", &protocols, Header), Ok(None));
        assert_eq!(
            find("?access=a.b-_.c", &[("sec-websocket-protocol", "nearcast")], HeaderOrAddress),
            Ok(None)
        );
    }

    #[test]
    fn two_are_too_many_and_other_schemes_are_none() {
        let header = ("authorization", "Bearer a");
        for (query, headers) in [
            ("?access_token=a", &[header][..]),
            ("", &[header, header]),
            ("?access_token=a&access_token=a", &[]),
        ] {
            let found = find(query, headers, TokenSource::HeaderOrAddress);
            assert!(matches!(found, Err(ApiError::BadRequest(_))), "{query} {headers:?}");
        }
        for value in ["Basic YTpi", "Bearer", "a.b.c"] {
            let found = find("", &[("authorization", value)], TokenSource::Header);
            assert!(matches!(found, Err(ApiError::Unauthenticated { has_token: true, .. })), "{value}");
        }
    }
}
