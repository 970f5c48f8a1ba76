//! What happened to a subscription, so that a quiet one can be seen to be alive.

use std::fmt::Write as _;

use matcher::live::Moment;

/// Counts, and when each thing happened last. Times are the tracker's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Activity {
    /// What its shard had evaluated before the subscription was made.
    evaluations_before: u64,
    matches: Happened,
    deliveries: Happened,
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

    /// As two members of an object.
    fn write(&self, text: &mut String, what: &str, last: &str, shown: impl Fn(Moment) -> String) {
        let Self { count, last: moment } = *self;
        let moment = if count == 0 { "null".to_owned() } else { format!("\"{}\"", shown(moment)) };
        write!(text, "\"{what}\":{count},\"{last}\":{moment}").expect("a text grows");
    }
}

impl Activity {
    pub(super) fn since(evaluations: &Happened) -> Self {
        Self { evaluations_before: evaluations.count, ..Self::default() }
    }

    /// An event satisfied the subscription, or an object entered or left; somebody read or nobody did.
    pub(super) fn matched(&mut self, is_read: bool, now: Moment) {
        self.matches.again(1, now);
        if is_read {
            self.deliveries.again(1, now);
        }
    }

    /// The subscription's document with what happened to it. `now` is the time by both clocks.
    pub(super) fn shown_in(
        &self,
        document: &str,
        evaluations: &Happened,
        now: (Moment, jiff::Timestamp),
    ) -> String {
        let shown = |moment: Moment| {
            let ago = now.0.saturating_sub(moment);
            let at = now.1.checked_sub(ago).unwrap_or(now.1);
            format!("{at:.3}")
        };
        let evaluations =
            Happened { count: evaluations.count.saturating_sub(self.evaluations_before), ..*evaluations };
        let mut text = String::with_capacity(document.len() + 192);
        text.push_str(document.strip_suffix('}').unwrap_or(document));
        text.push_str(",\"activity\":{");
        evaluations.write(&mut text, "evaluations", "last_evaluation", shown);
        text.push(',');
        self.matches.write(&mut text, "matches", "last_match", shown);
        text.push(',');
        self.deliveries.write(&mut text, "deliveries", "last_delivery", shown);
        text.push_str("}}");
        text
    }
}
