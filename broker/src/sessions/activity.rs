//! The activity of a subscription, so that a quiet one can be seen to be alive.

use std::collections::HashMap;
use std::fmt::Write as _;

use matcher::event::Event;
use matcher::live::Moment;

use super::{Held, Sessions};
use crate::model::tenant;

/// Published events that a shard has matched with its subscriptions. Where there are tenants each has a count of its own: how much
/// others publish is nobody's business.
#[derive(Debug, Default)]
pub(super) struct Evaluations {
    of_all: Happened,
    /// Tenant by tenant, as many as tokens have named. None where nobody has to say who they are.
    of_tenants: Option<HashMap<Box<str>, Happened, foldhash::fast::RandomState>>,
}

impl Evaluations {
    pub(super) fn new(has_tenants: bool) -> Self {
        Self { of_tenants: has_tenants.then(HashMap::default), ..Self::default() }
    }

    /// Counts events that the engine has matched.
    pub(super) fn note(&mut self, events: &[&Event], now: Moment) {
        let Some(of_tenants) = &mut self.of_tenants else {
            return self.of_all.again(events.len() as u64, now);
        };
        for tenant in events.iter().map(|event| tenant::of(event)) {
            match of_tenants.get_mut(tenant) {
                Some(happened) => happened.again(1, now),
                None => drop(of_tenants.insert(tenant.into(), Happened { count: 1, last: now })),
            }
        }
    }

    /// The evaluations that a client may know of: those of its tenant where there are tenants, else all.
    pub(super) fn of(&self, client: &str) -> Happened {
        match &self.of_tenants {
            Some(of_tenants) => of_tenants.get(tenant::split(client).0).copied().unwrap_or_default(),
            None => self.of_all,
        }
    }
}

/// Counts, and when each thing happened last. Times are the tracker's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Activity {
    /// Count of the shard's evaluations when the subscription was made.
    evaluations_before: u64,
    matches: Happened,
    deliveries: Happened,
    is_suspended: bool,
}

/// Something that happens again and again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Happened {
    count: u64,
    last: Moment,
}

impl Happened {
    pub(super) fn again(&mut self, times: u64, now: Moment) {
        self.count += times;
        self.last = now;
    }

    /// Writes the count and the time as two members of an object.
    fn write(&self, text: &mut String, what: &str, last: &str, shown: impl Fn(Moment) -> String) {
        let Self { count, last: moment } = *self;
        let moment = if count == 0 { "null".to_owned() } else { format!("\"{}\"", shown(moment)) };
        write!(text, "\"{what}\":{count},\"{last}\":{moment}").expect("a text grows");
    }
}

impl Activity {
    pub(super) fn since(evaluations: Happened) -> Self {
        Self { evaluations_before: evaluations.count, ..Self::default() }
    }

    /// An event satisfied the subscription, or an object entered or left; somebody read or nobody did.
    pub(super) fn matched(&mut self, is_read: bool, now: Moment) {
        self.matches.again(1, now);
        if is_read {
            self.deliveries.again(1, now);
        }
    }

    /// It cost too much, and finds nothing any more.
    pub(super) fn suspend(&mut self) {
        self.is_suspended = true;
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.is_suspended
    }

    /// The subscription's document with its activity. A caller that may not know how much else was evaluated gets the matches again.
    /// `now` is the time by both clocks.
    fn shown_in(
        &self,
        document: &str,
        evaluations: Option<Happened>,
        now: (Moment, jiff::Timestamp),
    ) -> String {
        let shown = |moment: Moment| {
            let ago = now.0.saturating_sub(moment);
            let at = now.1.checked_sub(ago).unwrap_or(now.1);
            format!("{at:.3}")
        };
        let evaluations = match evaluations {
            Some(Happened { count, last }) => {
                Happened { count: count.saturating_sub(self.evaluations_before), last }
            }
            None => self.matches,
        };
        let mut text = String::with_capacity(document.len() + 192);
        text.push_str(document.strip_suffix('}').unwrap_or(document));
        text.push_str(",\"activity\":{");
        evaluations.write(&mut text, "evaluations", "last_evaluation", shown);
        text.push(',');
        self.matches.write(&mut text, "matches", "last_match", shown);
        text.push(',');
        self.deliveries.write(&mut text, "deliveries", "last_delivery", shown);
        if self.is_suspended {
            text.push_str(",\"suspended\":true");
        }
        text.push_str("}}");
        text
    }
}

impl Held {
    /// Its document, with what happened to it.
    pub(super) fn shown(&self, evaluations: Option<Happened>, now: Moment) -> String {
        self.activity.shown_in(&self.document, evaluations, (now, jiff::Timestamp::now()))
    }
}

impl Sessions {
    /// The document of a subscription, with what happened to it.
    pub(crate) fn document(&self, name: &str, id: &str) -> Option<String> {
        let client = self.clients.get(*self.ids.get(name)?)?;
        let held = self.subscriptions.get(*client.subscriptions.get(id)?)?;
        Some(held.shown(client.evaluations(&self.evaluations), self.now))
    }

    /// The documents of all subscriptions of a client, by id.
    pub(crate) fn documents(&self, name: &str) -> Vec<String> {
        let Some(client) = self.ids.get(name).and_then(|id| self.clients.get(*id)) else { return Vec::new() };
        let evaluations = client.evaluations(&self.evaluations);
        let held = client.subscriptions.values().filter_map(|number| self.subscriptions.get(*number));
        held.map(|held| held.shown(evaluations, self.now)).collect()
    }
}
