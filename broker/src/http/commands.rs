//! Requests that a client makes over its WebSocket.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use wire::Fault;

use super::body::Bound;
use super::events::Publish;
use super::publish_batch::PublishBatch;
use super::replies::Replies;
use super::{App, encode, positions};
use crate::admission::Publisher;
use crate::auth::{Renewable, Scope, Token};
use crate::ingest::json::{self, Members};
use crate::ingest::scan::Shape;
use crate::model::completion::Completion;
use crate::model::error::ApiError;
use crate::model::tenant;
use crate::outbox::Outbox;
use crate::shard::{Command, Place};
use crate::telemetry::TraceContext;

/// Name of a WebSocket in spans.
const OVER: &str = "websocket";

/// Bytes of a `ref`.
const REFERENCE_BYTES: usize = 256;

/// One WebSocket, as far as its requests are concerned.
pub(crate) struct WsSession {
    pub(crate) app: Arc<App>,
    pub(crate) client: Arc<str>,
    /// The place of the client, once the connection reads for it.
    pub(crate) place: OnceLock<Place>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) principal: Renewable,
    pub(crate) publisher: Publisher,
    /// Whether this task is to run the shard on which it left an event.
    pub(crate) runs_inline: AtomicBool,
}

impl WsSession {
    /// Carries a frame out and answers it, or lets its answer wait; says whether it was in order.
    pub(crate) async fn frame(&self, text: &str, answers: &mut Replies) -> bool {
        let mut reference = None;
        match self.carry_out(text, &mut reference, answers).await {
            Ok(Answer::Taken { receipt, warnings }) => answers.take(receipt, reference, warnings),
            Ok(Answer::Ok) => answers.push(encode::ok(reference)),
            Ok(Answer::Pong) => answers.push(r#"{"op":"pong"}"#),
            Ok(Answer::Silence) => {}
            Ok(Answer::Later { receipt, is_wanted }) => answers.push_later(receipt, reference, is_wanted),
            Err(refusal) => {
                self.publish_taken(answers).await;
                self.app.metrics.problems.add(1);
                answers.push(refusal.frame(reference));
                // That there is too much to do is no fault of the frame.
                return matches!(refusal, ApiError::Overloaded | ApiError::TooCostly { .. });
            }
        }
        true
    }

    /// Publishes the events that were taken, and answers them.
    pub(crate) async fn publish_taken(&self, answers: &mut Replies) {
        let published = answers.batch.publish(&self.app, OVER).await;
        self.answer_taken(answers, published);
    }

    /// Publishes the events that were taken as [`publish_taken`](Self::publish_taken) does, when nothing else is there to be
    /// read. The engines' work that follows may be left to this task.
    pub(crate) async fn publish_the_rest(&self, answers: &mut Replies) {
        let published = answers.batch.publish_inline(&self.app, OVER).await;
        let published = published.map(|is_left| {
            self.runs_inline.fetch_or(is_left, Ordering::Relaxed);
        });
        self.answer_taken(answers, published);
    }

    fn answer_taken(&self, answers: &mut Replies, published: Result<(), ApiError>) {
        match published {
            Ok(()) => answers.published(),
            Err(refusal) => {
                let left = answers.batch.refuse(&self.app, OVER, &refusal);
                answers.not_published(left, &refusal);
            }
        }
    }

    /// Writes what was answered, and then does what is left to this task. Due whenever it has read.
    pub(crate) fn see_to_the_rest(&self) {
        self.outbox.flush();
        if self.runs_inline.swap(false, Ordering::Relaxed) {
            self.app.shards.run_inline();
        }
    }

    async fn carry_out<'a>(
        &self,
        text: &'a str,
        reference: &mut Option<&'a str>,
        answers: &mut Replies,
    ) -> Result<Answer, ApiError> {
        let mut members = Members::read(Shape::Frame, text)?;
        // First, so that whatever else is wrong is answered to who asked.
        *reference = members.only("ref").map(check_reference).transpose()?;
        members.check_once()?;
        members.take("ref");
        let Some(op) = members.take("op") else {
            return Err(ApiError::invalid("/op", "must say what to do"));
        };
        self.app.refuse_when_stopping()?;
        if op != "\"publish\"" {
            // What was sent before has its effect before.
            self.publish_taken(answers).await;
        }
        match op {
            "\"subscribe\"" => {
                Bound::of_subscription(&self.app).check(text)?;
                self.subscribe(members, text, *reference, answers).await
            }
            "\"unsubscribe\"" => self.unsubscribe(members).await,
            "\"move\"" => {
                Bound::of_position(&self.app).check(text)?;
                self.move_to(members, text.len(), reference.is_some()).await
            }
            "\"publish\"" => {
                self.principal.require(Scope::Publish)?;
                self.publish(members, &mut answers.batch).await
            }
            "\"ack\"" => self.acknowledge(members).await,
            "\"auth\"" => self.renew(members).await,
            "\"ping\"" => Ok(Answer::Pong),
            _ => Err(ApiError::invalid(
                "/op",
                "must be \"subscribe\", \"unsubscribe\", \"move\", \"publish\", \"ack\", \"auth\" or \"ping\"",
            )),
        }
    }

    /// The shard answers once the subscription is in force, so the answer stands before every delivery
    /// that it brings; and behind the answers to what was asked before, which come first.
    async fn subscribe(
        &self,
        mut members: Members<'_>,
        text: &str,
        reference: Option<&str>,
        answers: &mut Replies,
    ) -> Result<Answer, ApiError> {
        let id = self.id(&mut members)?;
        // First: while a change is under way others wait for it, and are not to wait for the disk.
        answers.all().await;
        let (app, principal) = (Arc::clone(&self.app), Arc::clone(self.principal.first()));
        let (text, bytes) = (text.to_owned(), text.len());
        let read = move || {
            let mut members = Members::read(Shape::Plain, &text)?;
            for read in ["op", "ref", "id"] {
                members.take(read);
            }
            app.subscriptions.parse_members(&id, members)?.on_behalf(principal.behalf()).map(Box::new)
        };
        let (mut subscription, change) =
            self.app.admission.read(&self.publisher, &self.client, bytes, read).await?;
        self.app.lay_routes(&self.client, &mut subscription, None).await?;
        if self.outbox.is_closing() {
            // The client may have been deleted while this was held back.
            return Ok(Answer::Silence);
        }
        let owner = Some(Arc::clone(&self.outbox));
        let answer = Some(encode::ok(reference).into());
        let change = Some(change);
        let install = |client, reply| Command::Install { client, subscription, change, owner, answer, reply };
        self.app.shards.ask(&self.client, install).await??;
        Ok(Answer::Silence)
    }

    async fn unsubscribe(&self, mut members: Members<'_>) -> Result<Answer, ApiError> {
        let id: Arc<str> = self.id(&mut members)?.into();
        let asked = Arc::clone(&id);
        let confinement = self.principal.behalf().confinement.cloned();
        let remove = |client, reply| Command::Remove { client, id: asked, confinement, reply };
        if self.app.shards.ask(&self.client, remove).await?? {
            Ok(Answer::Ok)
        } else {
            Err(ApiError::NotFound(format!("there is no subscription {id}")))
        }
    }

    fn id(&self, members: &mut Members<'_>) -> Result<String, ApiError> {
        let text =
            members.take("id").ok_or_else(|| ApiError::invalid("/id", "must name the subscription"))?;
        let id: String = json::read(text, "/id", "a text")?;
        self.app.subscriptions.check_id(&id, "/id")?;
        Ok(id)
    }

    async fn move_to(
        &self,
        mut members: Members<'_>,
        bytes: usize,
        is_wanted: bool,
    ) -> Result<Answer, ApiError> {
        let told = self.app.positions.parse_members(&mut members, bytes)?;
        let receipt = self.app.shards.receipt_of_moves();
        let (behalf, place) = (self.principal.behalf(), self.place.get().copied());
        let Self { app, publisher, client, .. } = self;
        positions::move_client(app, publisher, behalf, client, place, told, receipt.as_ref()).await?;
        if let Some(receipt) = receipt.as_ref().filter(|_| self.app.shards.is_heavy(&self.client)) {
            // What the connection sends next comes behind it. Its answer says what became of it.
            let _ = receipt.settled().await;
        }
        Ok(match receipt {
            Some(receipt) => Answer::Later { receipt, is_wanted },
            None if is_wanted => Answer::Ok,
            None => Answer::Silence,
        })
    }

    async fn publish(&self, mut members: Members<'_>, batch: &mut PublishBatch) -> Result<Answer, ApiError> {
        let event =
            members.take_object("event").ok_or_else(|| ApiError::invalid("/event", "must be a Feature"))?;
        let receipt = self.app.shards.receipt();
        // The connection itself ends with its token.
        let context = TraceContext::of_frame(&mut members);
        let mut work = Publish {
            app: &self.app,
            batch,
            publisher: &self.publisher,
            behalf: self.principal.behalf(),
            scopes: self.principal.scopes(),
            expires: None,
            is_batch: false,
            receipt: receipt.as_ref(),
            context: context.as_ref(),
            over: OVER,
        };
        let mut warnings = work.event(event).await.map_err(|refusal| refusal.below("/event"))?;
        warnings.iter_mut().for_each(|warning| warning.pointer.insert_str(0, "/event"));
        Ok(Answer::Taken { receipt, warnings })
    }

    /// Goes on by another token.
    async fn renew(&self, mut members: Members<'_>) -> Result<Answer, ApiError> {
        let text =
            members.take("token").ok_or_else(|| ApiError::invalid("/token", "must be a JSON Web Token"))?;
        let token = Token::told(json::read(text, "/token", "a text")?);
        let principal = self.app.authenticator.authenticate(Some(token)).await?;
        principal.check_client(tenant::outside(&self.client))?;
        self.principal.renew(&principal, Scope::Subscribe)?;
        Ok(Answer::Ok)
    }

    async fn acknowledge(&self, mut members: Members<'_>) -> Result<Answer, ApiError> {
        let expected =
            "the offset of a delivery, a whole number from 0 on: up to there nothing is needed any more";
        let missing = || ApiError::invalid("/offset", format!("must be {expected}"));
        let offset = json::read(members.take("offset").ok_or_else(missing)?, "/offset", expected)?;
        self.app
            .shards
            .ask(&self.client, |client, reply| Command::Ack { client, offset, state: None, reply })
            .await??;
        Ok(Answer::Silence)
    }
}

/// How a request that was carried out is answered.
enum Answer {
    Ok,
    /// When the batch is published that it is part of now, and safe where there is something to wait for.
    Taken {
        receipt: Option<Arc<Completion>>,
        /// What is probably not meant so.
        warnings: Vec<Fault>,
    },
    Pong,
    Silence,
    /// When it is safe; `ok` only where that is wanted.
    Later {
        receipt: Arc<Completion>,
        is_wanted: bool,
    },
}

/// A `ref` goes back as it was written, so what is written has to be something that anyone can read.
fn check_reference(text: &str) -> Result<&str, ApiError> {
    let readable = if text.starts_with('"') {
        serde_json::from_str::<Cow<'_, str>>(text).is_ok()
    } else {
        serde_json::from_str::<f64>(text).is_ok()
    };
    if readable && text.len() <= REFERENCE_BYTES {
        Ok(text)
    } else {
        Err(ApiError::invalid(
            "/ref",
            format!("must be a number or a text of at most {REFERENCE_BYTES} bytes"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use matcher::geo::World;

    use super::*;
    use crate::auth::{Authenticator, Principal};
    use crate::config::Config;
    use crate::engines::{CheckEngines, Engines};
    use crate::ingest::feature::FeatureReader;
    use crate::model::delivery::Entry;
    use crate::sessions::{Restored, Resume, Shared};
    use crate::shard::Shards;
    use crate::store::Store;

    /// Requests that come faster than they are answered, of a broker whose answers wait until something is safe.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_does_not_wait_for_answers_gets_them_in_order() {
        let mut config = Config::default();
        let folder = tempfile::TempDir::new().unwrap();
        config.store.data = folder.path().join("data").to_str().unwrap().to_owned();
        config.server.shards = 2;
        let shared = Shared::new(&config, 2);
        let engines = Engines::find(&config).unwrap();
        let features = FeatureReader::new(World::Geodetic, &config.limits, 7);
        let (store, _) = Store::open(&config.store, config.server.world, |_| {}).unwrap();
        let restored = Restored::default();
        let (shards, threads) = Shards::start(&config, engines, &shared, Some(&store), restored).unwrap();
        let authenticator = Authenticator::open(&config).unwrap().into();
        let app = App::new(
            config.into(),
            features,
            shards,
            shared,
            authenticator,
            (CheckEngines::default(), None, None, None, None),
            &Default::default(),
        );
        let (outbox, client) = (app.outbox("car"), Arc::from("car"));
        let attach = |client, reply| {
            let outbox = Arc::clone(&outbox);
            Command::Attach { client, outbox, resume: Resume::Ready, confinement: None, reply }
        };
        let attached = app.shards.ask(&client, attach).await.unwrap().unwrap();
        let place = OnceLock::from(app.shards.place_of(&client, &attached));
        let principal = Renewable::new(Arc::new(Principal::of_everything()));
        let flow = crate::admission::flow_of_connection(&app.config);
        let publisher = app.admission.publisher(&Principal::of_everything(), &flow);
        let asker = WsSession {
            app: Arc::clone(&app),
            client,
            place,
            outbox,
            principal,
            publisher,
            runs_inline: false.into(),
        };
        let mut answers = Replies::new(&app, &asker.outbox);

        let mut expected = vec![r#"{"op":"ready""#.to_owned()];
        for index in 0..100 {
            let frames = [
                (
                    r#""publish","event":{"type":"Feature","geometry":{"type":"Point","coordinates":[9,45]}}"#,
                    "ok",
                ),
                (r#""move","coordinates":[9,45]"#, "ok"),
                (r#""move","coordinates":[9,450]"#, "problem"),
                (r#""publish","event":{}"#, "problem"),
                (r#""ack","offset":1"#, "problem"),
                (r#""subscribe","id":"s","filters":[{"area":{"radius_m":5},"where":"a = 1"}]"#, "ok"),
                (r#""unsubscribe","id":"s""#, "ok"),
            ];
            for (step, (frame, answer)) in frames.into_iter().enumerate() {
                let reference = index * 10 + step;
                let text = format!(r#"{{"op":{frame},"ref":{reference}}}"#);
                answers.room().await;
                assert_eq!(asker.frame(&text, &mut answers).await, answer == "ok", "{text}");
                expected.push(format!(r#"{{"op":"{answer}","ref":{reference}"#));
            }
        }
        asker.publish_taken(&mut answers).await;
        answers.all().await;
        let mut batch = Vec::new();
        asker.outbox.next_batch(&mut batch, usize::MAX).await;
        assert_eq!(batch.len(), expected.len());
        for (entry, expected) in batch.into_iter().zip(&expected) {
            let Entry::Answer(given) = entry else { panic!("{entry:?}") };
            assert!(given.starts_with(expected.as_str()), "{expected} is due: {given}");
        }
        assert!(app.requests.is_empty());
        app.shards.stop().await;
        // Who is not let in has nothing that could fail later.
        let receipt = app.shards.receipt().unwrap();
        let told = app.positions.parse(r#"{"coordinates":[9,45]}"#).unwrap();
        let moved = app.shards.move_client(&asker.client, told, None, Some(&receipt)).await;
        assert_eq!((moved, receipt.settled().await), (Err(ApiError::Stopping), Ok(())));
        threads.into_iter().for_each(|thread| drop(thread.join().unwrap()));
    }
}
