//! The console and the phone page: files that the program carries, and what they have to know before they have a token.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderMap,
    HeaderName, HeaderValue, IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Redirect, Response};
use nearcast_web::File;
use serde_json::json;

use super::{App, error};
use crate::config::{Console, interests};
use crate::model::error::ApiError;

/// Scripts come from here alone. MapLibre wants styles that it writes into the page, and workers and pictures that it makes itself;
/// `ws:` and `wss:` are for browsers that do not take a WebSocket of the same host for `'self'`.
const POLICY: &str = "default-src 'self'; connect-src 'self' ws: wss:; img-src 'self' data: blob:; worker-src 'self' blob:; \
     style-src 'self' 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; object-src 'none'";

/// Headers of the console, of the phone page and of the page of the API.
pub(super) const GUARDS: [(HeaderName, HeaderValue); 3] = [
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
];

/// `Cache-Control` of a file that a browser may keep, but asks about each time.
pub(super) const ASK_AGAIN: HeaderValue = HeaderValue::from_static("no-cache");
/// `Cache-Control` of a file that never changes, so that a browser that has it never asks again.
const FOR_GOOD: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// The console.
pub(crate) async fn console(asked: HeaderMap) -> Response {
    page("index.html", &asked)
}

/// The phone page.
pub(crate) async fn phone(asked: HeaderMap) -> Response {
    page("phone.html", &asked)
}

/// The phone page's address with a slash, from which its files would not be found. Relative, for a proxy may have put all of it at a path.
pub(crate) async fn phone_without_slash() -> Redirect {
    Redirect::permanent("../phone")
}

fn page(path: &str, asked: &HeaderMap) -> Response {
    match nearcast_web::file(path) {
        Some(file) if nearcast_web::built() => Content::of(file).answer(asked),
        _ => {
            let html = Bytes::from_static(include_bytes!("unbuilt.html"));
            let kind = HeaderValue::from_static("text/html; charset=utf-8");
            ([(CONTENT_TYPE, kind), (CACHE_CONTROL, ASK_AGAIN)], GUARDS, html).into_response()
        }
    }
}

/// Serves a file that the pages load. None of their names needs an escape, so that a path is taken as it came.
pub(crate) async fn asset(address: Uri, asked: HeaderMap) -> Result<Response, ApiError> {
    match address.path().strip_prefix('/').and_then(nearcast_web::file) {
        Some(file) => Ok(Content::of(file).answer(&asked)),
        None => Err(ApiError::NotFound(format!("there is no {}", address.path()))),
    }
}

/// Serves the settings that a page needs before it has a token, as a JSON object.
pub(crate) async fn settings(State(app): State<Arc<App>>) -> Response {
    let Console { object, interests, notice, .. } = &app.config.console;
    let settings = json!({
        "world": app.config.server.world.name(),
        "tokens": app.authenticator.wants_tokens(),
        "base_map": app.base_map.is_some(),
        "routes": app.streets.is_some(),
        "object": (!object.is_empty()).then_some(object),
        // Settings with faults in them are none that a broker runs with.
        "round_m": app.config.shown_m(),
        "interests": interests::read(interests).unwrap_or_default(),
        "notice": (!notice.is_empty()).then_some(notice),
    });
    ([(CACHE_CONTROL, ASK_AGAIN)], GUARDS, error::json(StatusCode::OK, settings.to_string())).into_response()
}

/// The content of a response; it is sent unless the browser has it already.
pub(super) struct Content {
    pub(super) kind: HeaderValue,
    pub(super) etag: HeaderValue,
    pub(super) cache: HeaderValue,
    pub(super) plain: Bytes,
    pub(super) gzip: Option<Bytes>,
}

impl Content {
    fn of(file: &'static File) -> Self {
        Self {
            kind: HeaderValue::from_static(file.content_type),
            etag: HeaderValue::from_static(file.etag),
            cache: if file.is_immutable() { FOR_GOOD } else { ASK_AGAIN },
            plain: Bytes::from_static(file.plain),
            gzip: file.gzip.map(Bytes::from_static),
        }
    }

    pub(super) fn answer(self, asked: &HeaderMap) -> Response {
        let Self { kind, etag, cache, plain, gzip } = self;
        let response = if has(asked, &etag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else if let Some(gzip) = gzip.filter(|_| accepts_gzip(asked)) {
            ([(CONTENT_TYPE, kind), (CONTENT_ENCODING, HeaderValue::from_static("gzip"))], gzip)
                .into_response()
        } else {
            ([(CONTENT_TYPE, kind)], plain).into_response()
        };
        let vary = HeaderValue::from_static("accept-encoding");
        ([(ETAG, etag), (CACHE_CONTROL, cache), (VARY, vary)], GUARDS, response).into_response()
    }
}

/// Whether a request tells one of its tags to be this one (RFC 9110, 13.1.2), weak or not.
pub(super) fn has(asked: &HeaderMap, etag: &HeaderValue) -> bool {
    let Some(etag) = etag.to_str().ok().map(opaque) else { return false };
    elements(asked, &IF_NONE_MATCH).any(|told| told == "*" || opaque(told) == etag)
}

fn opaque(etag: &str) -> &str {
    etag.strip_prefix("W/").unwrap_or(etag)
}

/// Whether a request says that gzip is fine (RFC 9110, 12.5.3). One that says nothing gets what everybody can read.
pub(super) fn accepts_gzip(asked: &HeaderMap) -> bool {
    let weight = |coding: &str| {
        let mut told = elements(asked, &ACCEPT_ENCODING).filter_map(|element| {
            let (name, parameters) = element.split_once(';').unwrap_or((element, "q=1"));
            let weight = parameters.trim().strip_prefix(['q', 'Q'])?.trim_start().strip_prefix('=')?.trim();
            name.trim().eq_ignore_ascii_case(coding).then(|| weight.parse::<f32>().unwrap_or(0.0))
        });
        told.next()
    };
    weight("gzip").or_else(|| weight("*")).is_some_and(|weight| weight > 0.0)
}

/// The elements of a list that may be spread over several headers. No tag of ours has a comma.
fn elements<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let texts = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, values: &[&'static str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn gzip_goes_to_those_who_accept_it() {
        for values in [
            &["gzip"][..],
            &["gzip, deflate, br, zstd"],
            &["br;q=1.0, GZIP;q=0.1"],
            &["identity", "gzip ; q = 0.5"],
            &["*"],
            &["br, *;q=0.1"],
        ] {
            assert!(accepts_gzip(&headers(ACCEPT_ENCODING, values)), "{values:?}");
        }
        for values in [
            &[][..],
            &[""],
            &["br"],
            &["gzip;q=0"],
            &["gzip;q=0.000, *"],
            &["*;q=0"],
            &["gzip;q=x"],
            &["gzipped"],
        ] {
            assert!(!accepts_gzip(&headers(ACCEPT_ENCODING, values)), "{values:?}");
        }
    }

    #[test]
    fn tags_are_compared_whether_weak_or_not() {
        let etag = HeaderValue::from_static("W/\"1\"");
        for values in [&["W/\"1\""][..], &["\"1\""], &["\"0\", W/\"1\""], &["\"0\"", "\"1\""], &["*"]] {
            assert!(has(&headers(IF_NONE_MATCH, values), &etag), "{values:?}");
        }
        for values in [&[][..], &[""], &["\"0\""], &["1"], &["W/1"]] {
            assert!(!has(&headers(IF_NONE_MATCH, values), &etag), "{values:?}");
        }
    }
}
