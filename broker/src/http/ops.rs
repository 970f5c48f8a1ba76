//! What a client asks over its WebSocket.

use std::borrow::Cow;
use std::sync::Arc;

use super::batch::Work as _;
use super::body::Bound;
use super::events::Publish;
use super::{App, Pace, encode, positions};
use crate::ingest::json::{self, Members};
use crate::ingest::position;
use crate::outbox::Outbox;
use crate::refusal::Refusal;
use crate::shard::Command;

/// Bytes of a `ref`.
const REFERENCE_BYTES: usize = 256;

/// One WebSocket, as far as its requests are concerned.
pub(crate) struct Asker {
    pub(crate) app: Arc<App>,
    pub(crate) client: Arc<str>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) pace: Pace,
}

impl Asker {
    /// Carries a frame out and answers it; says whether it was in order.
    pub(crate) async fn frame(&self, text: &str) -> bool {
        let mut reference = None;
        match self.carry_out(text, &mut reference).await {
            Ok(Answer::Ok) => self.outbox.push_answer(encode::ok(reference)),
            Ok(Answer::Pong) => self.outbox.push_answer(r#"{"op":"pong"}"#),
            Ok(Answer::Silence) => {}
            Err(refusal) => {
                self.app.metrics.problems.add(1);
                self.outbox.push_answer(encode::problem(reference, &refusal));
                return false;
            }
        }
        true
    }

    async fn carry_out<'a>(&self, text: &'a str, reference: &mut Option<&'a str>) -> Result<Answer, Refusal> {
        let mut members = Members::read(text)?;
        // First, so that whatever else is wrong is answered to who asked.
        *reference = members.only("ref").map(check_reference).transpose()?;
        members.check_once()?;
        members.take("ref");
        let Some(op) = members.take("op") else { return Err(Refusal::invalid("/op", "must say what to do")) };
        self.app.refuse_when_stopping()?;
        match op {
            "\"subscribe\"" => {
                Bound::of_subscription(&self.app).check(text)?;
                self.subscribe(members, *reference).await
            }
            "\"unsubscribe\"" => self.unsubscribe(members).await,
            "\"move\"" => {
                Bound::of_position(&self.app).check(text)?;
                self.move_to(members, reference.is_some()).await
            }
            "\"publish\"" => self.publish(members).await,
            "\"ack\"" => acknowledge(members),
            "\"ping\"" => Ok(Answer::Pong),
            _ => Err(Refusal::invalid(
                "/op",
                "must be \"subscribe\", \"unsubscribe\", \"move\", \"publish\", \"ack\" or \"ping\"",
            )),
        }
    }

    /// The engine's thread answers once the subscription is in force, so the answer stands before every delivery
    /// that it brings.
    async fn subscribe(&self, mut members: Members<'_>, reference: Option<&str>) -> Result<Answer, Refusal> {
        let id = self.id(&mut members)?;
        let subscription = Box::new(self.app.subscriptions.parse_members(&id, members)?);
        let owner = Some(Arc::clone(&self.outbox));
        let answer = Some(encode::ok(reference).into());
        let install = |client, reply| Command::Install { client, subscription, owner, answer, reply };
        self.app.shards.ask(&self.client, install).await??;
        Ok(Answer::Silence)
    }

    async fn unsubscribe(&self, mut members: Members<'_>) -> Result<Answer, Refusal> {
        let id: Arc<str> = self.id(&mut members)?.into();
        let asked = Arc::clone(&id);
        let remove = |client, reply| Command::Remove { client, id: asked, reply };
        if self.app.shards.ask(&self.client, remove).await? {
            Ok(Answer::Ok)
        } else {
            Err(Refusal::NotFound(format!("there is no subscription {id}")))
        }
    }

    fn id(&self, members: &mut Members<'_>) -> Result<String, Refusal> {
        let text = members.take("id").ok_or_else(|| Refusal::invalid("/id", "must name the subscription"))?;
        let id: String = json::read(text, "/id", "a text")?;
        self.app.subscriptions.check_id(&id, "/id")?;
        Ok(id)
    }

    async fn move_to(&self, mut members: Members<'_>, answers: bool) -> Result<Answer, Refusal> {
        let fix = position::from_members(self.app.world, &mut members)?;
        positions::move_client(&self.app, &self.client, fix).await?;
        Ok(if answers { Answer::Ok } else { Answer::Silence })
    }

    async fn publish(&self, mut members: Members<'_>) -> Result<Answer, Refusal> {
        let event = members.take("event").ok_or_else(|| Refusal::invalid("/event", "must be a Feature"))?;
        let mut work = Publish { app: &self.app, pace: &self.pace };
        work.element(event).await.map_err(|refusal| refusal.below("/event"))?;
        Ok(Answer::Ok)
    }
}

/// How a request that was carried out is answered.
enum Answer {
    Ok,
    Pong,
    Silence,
}

/// Acknowledgements free what is kept for durable sessions; here nothing is kept, so they are only checked.
fn acknowledge(mut members: Members<'_>) -> Result<Answer, Refusal> {
    let offset = members.take("offset").ok_or_else(|| Refusal::invalid("/offset", "must be there"))?;
    json::read::<u64>(offset, "/offset", "a whole number, 0 or more")?;
    Ok(Answer::Silence)
}

/// A `ref` goes back as it was written, so what is written has to be something that anyone can read.
fn check_reference(text: &str) -> Result<&str, Refusal> {
    let readable = if text.starts_with('"') {
        serde_json::from_str::<Cow<'_, str>>(text).is_ok()
    } else {
        serde_json::from_str::<f64>(text).is_ok()
    };
    if readable && text.len() <= REFERENCE_BYTES {
        Ok(text)
    } else {
        Err(Refusal::invalid(
            "/ref",
            format!("must be a number or a text of at most {REFERENCE_BYTES} bytes"),
        ))
    }
}
