//! The base map of the pages: a document, tiles in one file, or tiles that are made when they are asked for.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue,
    IF_RANGE, RANGE,
};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use tokio::io::AsyncReadExt as _;
use tokio_util::io::ReaderStream;

use super::App;
use super::pages::{ASK_AGAIN, Content, GUARDS, accepts_gzip, has};
use crate::base_map::{BaseMap, Document};
use crate::model::error::ApiError;

/// Serves the map, or what a page has to know to ask for its tiles; 404 where none is set.
pub(crate) async fn document(State(app): State<Arc<App>>, asked: HeaderMap) -> Result<Response, ApiError> {
    Ok(answer(&map(&app)?.document, &asked))
}

/// Serves the names of what an extract has, for the search of the pages.
pub(crate) async fn names(State(app): State<Arc<App>>, asked: HeaderMap) -> Result<Response, ApiError> {
    let city = map(&app)?.city.as_ref().ok_or_else(|| other("an extract of OpenStreetMap"))?;
    Ok(answer(&city.names, &asked))
}

/// Serves a tile of an extract; 404 beyond its zooms.
pub(crate) async fn tile(
    State(app): State<Arc<App>>,
    address: Uri,
    asked: HeaderMap,
) -> Result<Response, ApiError> {
    let city = map(&app)?.city.as_ref().ok_or_else(|| other("an extract of OpenStreetMap"))?;
    let none = || ApiError::NotFound(format!("there is no tile {}", address.path()));
    let mut parts = address.path().rsplitn(4, '/').map(|part| part.parse::<u32>().ok());
    let (Some(Some(y)), Some(Some(x)), Some(Some(zoom))) = (parts.next(), parts.next(), parts.next()) else {
        return Err(none());
    };
    let kind = HeaderValue::from_static("application/vnd.mapbox-vector-tile");
    let content = |plain, gzip| Content { kind, etag: city.etag.clone(), cache: ASK_AGAIN, plain, gzip };
    if has(&asked, &city.etag) {
        return Ok(content(Bytes::new(), None).answer(&asked));
    }
    let wants_gzip = accepts_gzip(&asked);
    let tile = Bytes::from(Arc::clone(city).tile([zoom, x, y], wants_gzip).await.ok_or_else(none)?);
    Ok(content(tile.clone(), wants_gzip.then_some(tile)).answer(&asked))
}

/// Serves the file of tiles, or the part of it that is asked for (RFC 9110, 14).
pub(crate) async fn archive(State(app): State<Arc<App>>, asked: HeaderMap) -> Result<Response, ApiError> {
    let archive = map(&app)?.archive.as_ref().ok_or_else(|| other("a PMTiles file"))?;
    let gone = |error: io::Error| {
        tracing::warn!(%error, "the base map cannot be read any more (console.base_map)");
        ApiError::NotFound("the base map cannot be read any more".to_owned())
    };
    let mut part = archive.part().await.map_err(gone)?;
    let (bytes, etag) = (part.bytes, part.etag.clone());
    let common = [
        (ETAG, etag.clone()),
        (CACHE_CONTROL, ASK_AGAIN),
        (ACCEPT_RANGES, HeaderValue::from_static("bytes")),
    ];
    if has(&asked, &etag) {
        return Ok((StatusCode::NOT_MODIFIED, common, GUARDS).into_response());
    }
    // A part of an older version is of no use beside one of this.
    let is_current = asked.get(IF_RANGE).is_none_or(|told| *told == etag);
    let range = asked.get(RANGE).filter(|_| is_current).and_then(|range| range.to_str().ok());
    let (status, range) = match range.and_then(|range| range_of(range, bytes)) {
        None => (StatusCode::OK, 0..bytes),
        Some(range) if range.is_empty() => {
            let all = [(CONTENT_RANGE, format!("bytes */{bytes}"))];
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, all, common, GUARDS).into_response());
        }
        Some(range) => (StatusCode::PARTIAL_CONTENT, range),
    };
    part.seek(&range).await.map_err(gone)?;
    let count = range.end - range.start;
    let body = Body::from_stream(ReaderStream::new(part.file.take(count)));
    let kind = HeaderValue::from_static("application/vnd.pmtiles");
    let length = [(CONTENT_TYPE, kind), (CONTENT_LENGTH, HeaderValue::from(count))];
    let mut response = (status, length, common, GUARDS, body).into_response();
    if status == StatusCode::PARTIAL_CONTENT {
        let told = format!("bytes {}-{}/{bytes}", range.start, range.end - 1);
        if let Ok(told) = HeaderValue::try_from(told) {
            response.headers_mut().insert(CONTENT_RANGE, told);
        }
    }
    Ok(response)
}

fn map(app: &App) -> Result<&BaseMap, ApiError> {
    let none = || ApiError::NotFound("there is no base map: console.base_map is empty".to_owned());
    app.base_map.as_ref().ok_or_else(none)
}

fn other(wanted: &str) -> ApiError {
    ApiError::NotFound(format!("the base map is not {wanted} (console.base_map)"))
}

fn answer(document: &Document, asked: &HeaderMap) -> Response {
    let Document { kind, plain, gzip, etag } = document.clone();
    Content { kind, etag, cache: ASK_AGAIN, plain, gzip: Some(gzip) }.answer(asked)
}

/// The bytes that a range means, none of them where it cannot be had; `None` for what may be left aside: several ranges, other units, nonsense.
fn range_of(range: &str, bytes: u64) -> Option<Range<u64>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| text.trim().parse::<u64>().ok();
    if first.is_empty() {
        return Some(bytes.saturating_sub(number(last)?)..bytes);
    }
    let first = number(first)?;
    let end = if last.is_empty() { bytes } else { number(last)?.checked_add(1)?.min(bytes) };
    if first >= bytes {
        return Some(0..0);
    }
    (first < end).then_some(first..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_what_http_says() {
        for (range, expected) in [
            ("bytes=0-9", Some(0..10)),
            ("bytes=90-", Some(90..100)),
            ("bytes=90-500", Some(90..100)),
            ("bytes=-10", Some(90..100)),
            ("bytes=-500", Some(0..100)),
            ("bytes=100-", Some(0..0)),
            ("bytes=100-200", Some(0..0)),
            ("bytes=-0", Some(100..100)),
            ("bytes=9-3", None),
            ("bytes=0-9,20-29", None),
            ("bytes=x-9", None),
            ("items=0-9", None),
            ("bytes=0-18446744073709551615", None),
        ] {
            assert_eq!(range_of(range, 100), expected, "{range}");
        }
    }
}
