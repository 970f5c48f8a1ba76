//! One message to one push service, and its answer (RFC 8030).

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use axum::http::{Request, StatusCode};

use super::message::{Length, Message};
use super::seal::seal;
use super::{Forget, Push, PushSubscription};
use crate::https_client::HttpsError;
use crate::model::event;

/// The time after which a push service is asked again that does not say when.
const LATER: Duration = Duration::from_secs(60);
/// The longest time that counts.
const LATER_MOST: Duration = Duration::from_secs(3_600);

/// A message under way.
pub(super) struct Dispatch {
    pub(super) push: Arc<Push>,
    pub(super) client: Arc<str>,
    pub(super) subscription: Arc<PushSubscription>,
    pub(super) event: Arc<event::Body>,
    pub(super) count: u64,
    pub(super) length: Length,
    pub(super) forget: Forget,
}

/// The outcome of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The push service has taken it.
    Sent,
    /// There was nothing to send: the event's life is over, or the client's name leaves no room.
    Nothing,
    /// The subscription is over, and forgotten by the broker.
    Gone,
    /// It is too long for the push service.
    TooLong,
    /// The push service takes nothing for this subscription until then.
    Later(Duration),
    /// The push service takes nothing until then.
    Overloaded(Duration),
    /// It did not answer in time.
    TimedOut,
    /// Something else was wrong.
    Failed,
}

impl Dispatch {
    /// Sends it.
    pub(super) async fn send(self) -> Outcome {
        let outcome = if self.subscription.is_over() { Outcome::Gone } else { self.exchange().await };
        if outcome == Outcome::Gone {
            (self.forget)(Arc::clone(&self.client), Arc::clone(&self.subscription)).await;
        }
        outcome
    }

    async fn exchange(&self) -> Outcome {
        let Self { push, client, subscription, event, count, length, .. } = self;
        let Some(message) = Message::new(client, event, *count, *length, push.ttl_s) else {
            return Outcome::Nothing;
        };
        let origin = subscription.origin();
        let sent = match self.request(&origin, message) {
            Ok(request) => push.client.send(&subscription.endpoint, request, 0).await,
            Err(why) => Err(HttpsError::Broken(why.to_string())),
        };
        match sent {
            Ok(answer) => {
                let outcome = outcome(answer.status(), answer.headers());
                if outcome != Outcome::Sent {
                    tracing::debug!(
                        origin,
                        status = answer.status().as_u16(),
                        "a push message was not taken"
                    );
                }
                outcome
            }
            Err(error) => {
                tracing::debug!(origin, %error, "a push message could not be sent");
                if matches!(error, HttpsError::TimedOut) { Outcome::TimedOut } else { Outcome::Failed }
            }
        }
    }

    fn request(&self, origin: &str, message: Message) -> anyhow::Result<Request<Body>> {
        let Self { push, subscription, event, .. } = self;
        let (urgency, topic) = if event.is_alarm { ("high", "alarm") } else { ("normal", "news") };
        let authorization = push.key.authorization(origin, &push.contact)?;
        let sealed = seal(&subscription.keys, &message.text)?;
        Ok(Request::post("/")
            .header(AUTHORIZATION, authorization)
            .header(CONTENT_ENCODING, "aes128gcm")
            .header(CONTENT_TYPE, "application/octet-stream")
            .header("ttl", message.ttl_s)
            .header("urgency", urgency)
            .header("topic", topic)
            .body(Body::from(sealed))?)
    }
}

/// The meaning of an answer.
fn outcome(status: StatusCode, headers: &HeaderMap) -> Outcome {
    match status {
        status if status.is_success() => Outcome::Sent,
        StatusCode::NOT_FOUND | StatusCode::GONE => Outcome::Gone,
        StatusCode::PAYLOAD_TOO_LARGE => Outcome::TooLong,
        StatusCode::TOO_MANY_REQUESTS => Outcome::Later(later(headers)),
        StatusCode::SERVICE_UNAVAILABLE => Outcome::Overloaded(later(headers)),
        _ => Outcome::Failed,
    }
}

/// When to come back: in a number of seconds or at a time (RFC 9110, 10.2.3).
fn later(headers: &HeaderMap) -> Duration {
    let said = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let after = said.and_then(|text| {
        let seconds = text.trim().parse().ok().map(Duration::from_secs);
        seconds.or_else(|| {
            let time = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
            Duration::try_from(time.duration_since(jiff::Timestamp::now())).ok()
        })
    });
    after.unwrap_or(LATER).clamp(Duration::from_secs(1), LATER_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_what_becomes_of_the_message() {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, "7".parse().unwrap());
        let seven = Duration::from_secs(7);
        for (status, expected) in [
            (200, Outcome::Sent),
            (201, Outcome::Sent),
            (301, Outcome::Failed),
            (307, Outcome::Failed),
            (400, Outcome::Failed),
            (403, Outcome::Failed),
            (404, Outcome::Gone),
            (410, Outcome::Gone),
            (413, Outcome::TooLong),
            (429, Outcome::Later(seven)),
            (500, Outcome::Failed),
            (503, Outcome::Overloaded(seven)),
        ] {
            assert_eq!(outcome(StatusCode::from_u16(status).unwrap(), &headers), expected, "{status}");
        }
    }

    #[test]
    fn a_push_service_says_when_to_come_back_within_bounds() {
        let said = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            later(&headers).as_secs()
        };
        assert_eq!(later(&HeaderMap::new()), LATER);
        for (text, seconds) in [
            ("0", 1),
            (" 30", 30),
            ("999999999", 3_600),
            ("-1", 60),
            ("soon", 60),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 60),
            ("Thu, 31 Dec 9998 23:59:59 GMT", 3_600),
        ] {
            assert_eq!(said(text), seconds, "{text}");
        }
    }
}
