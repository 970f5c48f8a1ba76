//! Subscriptions that a session has made: those that end with a connection are made again on the next one.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use wire::ClientFrame;

use super::{
    State,
    requests::{Answer, Purpose, Request},
};
use crate::{Error, frame};

/// A subscription that is in force, or on its way.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) id: String,
    subscription: wire::Subscription,
    /// The session of the broker's in which it was made last.
    epoch: Option<Arc<str>>,
}

/// Time after which a subscription is tried again that the broker had no time for.
const AGAIN: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Subscriptions {
    /// Subscriptions in the order in which they were first made.
    made: Vec<Made>,
    /// When those are tried again for which the broker had no time.
    again: Option<Instant>,
}

impl Subscriptions {
    fn find(&mut self, id: &str) -> Option<&mut Made> {
        self.made.iter_mut().find(|made| made.id == id)
    }
}

impl State {
    pub(crate) fn subscribe(
        &mut self,
        id: String,
        subscription: wire::Subscription,
        answer: Answer,
    ) -> Result<(), Error> {
        self.check_others()?;
        self.ask_for(Made { id, subscription, epoch: None }, Purpose::Subscribe, vec![answer]);
        Ok(())
    }

    pub(crate) fn unsubscribe(&mut self, id: &str, answer: Answer) -> Result<(), Error> {
        self.check_others()?;
        let made = &mut self.subscriptions.made;
        let before = made.iter().position(|made| made.id == id).map(|place| made.remove(place));
        let purpose = Purpose::Unsubscribe { id: id.to_owned(), before };
        self.requests.ask(&mut self.out, purpose, vec![answer], |reference| {
            frame::write(&ClientFrame::Unsubscribe { reference: Some(reference.into()), id: id.to_owned() })
        });
        Ok(())
    }

    /// A connection is there.
    pub(super) fn make_again(&mut self) {
        self.subscriptions.again = None;
        let epoch = self.epoch.clone();
        // A durable one is still there, unless the broker has forgotten everything; where it has not, this changes nothing.
        self.remake(|made| !made.subscription.durable || made.epoch != epoch);
    }

    /// When [`tick`](Self::tick_subscriptions) has something to do.
    pub(super) fn again(&self) -> Option<Instant> {
        self.subscriptions.again
    }

    pub(super) fn tick_subscriptions(&mut self, now: Instant) {
        if self.subscriptions.again.is_some_and(|again| again <= now) {
            self.subscriptions.again = None;
            self.remake(|made| made.epoch.is_none());
        }
    }

    fn remake(&mut self, which: impl Fn(&Made) -> bool) {
        let again: Vec<Made> = self.subscriptions.made.iter().filter(|made| which(made)).cloned().collect();
        for made in again {
            self.ask_for(made, |made| Purpose::Remake(made.id), Vec::new());
        }
    }

    fn ask_for(&mut self, made: Made, purpose: impl FnOnce(Made) -> Purpose, answers: Vec<Answer>) {
        let subscription = made.subscription.clone();
        self.requests.ask(&mut self.out, purpose(made), answers, |reference| {
            frame::write(&ClientFrame::Subscribe { reference: Some(reference.into()), subscription })
        });
    }

    pub(super) fn subscribed(&mut self, request: Request, outcome: Result<(), Error>) {
        if let (Purpose::Subscribe(made), Ok(())) = (&request.purpose, &outcome) {
            let made = Made { epoch: self.epoch.clone(), ..made.clone() };
            match self.subscriptions.find(&made.id) {
                Some(before) => *before = made,
                None => self.subscriptions.made.push(made),
            }
        }
        request.finish(outcome);
    }

    pub(super) fn remade(&mut self, id: &str, outcome: Result<(), Error>) {
        let epoch = self.epoch.clone();
        let Some(made) = self.subscriptions.find(id) else { return };
        match outcome {
            Ok(()) => made.epoch = epoch,
            Err(error) if matches!(error.problem(), Some(problem) if [429, 503].contains(&problem.status)) => {
                made.epoch = None;
                self.subscriptions.again.get_or_insert_with(|| Instant::now() + AGAIN);
            }
            Err(error) => {
                self.subscriptions.made.retain(|made| made.id != id);
                self.refused(error);
            }
        }
    }

    pub(super) fn unsubscribed(&mut self, mut request: Request, outcome: Result<(), Error>) {
        let Purpose::Unsubscribe { id, before } = &mut request.purpose else { return };
        let gone = outcome.as_ref().is_err_and(|error| error.code() == Some("not-found"));
        if outcome.is_err() && !gone && self.subscriptions.find(id).is_none() {
            self.subscriptions.made.extend(before.take());
        }
        // Sent before, it was carried out then.
        let done = if gone && request.sent > 1 { Ok(()) } else { outcome };
        request.finish(done);
    }
}
