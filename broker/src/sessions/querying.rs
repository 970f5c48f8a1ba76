//! Questions for what is live now, and where a client is.

use std::sync::Arc;
use std::time::Duration;

use matcher::condition::expression::Expression;
use matcher::event::Event;
use matcher::geo::Position;
use matcher::live::{Page, Place, Query, View, Wanted, Within};
use matcher::subscription::ClientId;
use tokio::sync::oneshot;

use super::{Payer, Sessions};
use crate::admission::Change;
use crate::ingest::Confinement;
use crate::model::error::ApiError;
use crate::model::event::Published;
use crate::model::{clock, tenant};

/// A question for live events of a tenant.
pub(crate) struct LiveQuestion {
    pub(crate) tenant: Arc<str>,
    pub(crate) within: Within,
    pub(crate) condition: Expression,
    /// A client, by its name inside, that has a subscription which takes them, and whether it asks itself.
    pub(crate) client: Option<(Arc<str>, bool)>,
    /// To which events the asker is confined.
    pub(crate) confinement: Option<Arc<Confinement>>,
    pub(crate) after: Option<Place>,
    /// How many are wanted at most.
    pub(crate) most: usize,
    pub(crate) payer: Arc<str>,
}

/// Live events, each with its place in the order, and the last place if there are more.
pub(crate) type LivePage = Page<Arc<Published>>;

/// The answer to a question where a client is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Located {
    /// It has told none.
    Nowhere,
    /// A setting keeps it from everybody else.
    Withheld,
    /// It is there, as it was told at this time, in Unix milliseconds.
    At { position: Position, accuracy_m: Option<f64>, told_ms: Option<u64> },
}

/// The questions that are under way in a shard: as many as admission lets be.
#[derive(Default)]
pub(super) struct Questions {
    waiting: Vec<Querying>,
    /// How many turns there were.
    turns: u64,
}

/// A question that is under way.
struct Querying {
    question: LiveQuestion,
    /// Admits it for as long as it is here: who has asked and gone may ask again when it is gone, too.
    _change: Option<Change>,
    reply: oneshot::Sender<Result<LivePage, ApiError>>,
    /// The number of its last turn; 0 if it had none.
    turn: u64,
    /// Once it has been begun, with the number of the client that it is about.
    begun: Option<(Query, Option<ClientId>)>,
}

/// Work that one slice does, in looks of the tracker: about half a millisecond.
const SLICE_WORK: u64 = 4_096;

impl LiveQuestion {
    /// What has to be true of events: what is asked for, and what the asker is confined to. That may take as long to test, and counts.
    fn condition(&self) -> Expression {
        match &self.confinement {
            Some(confinement) => Expression::And(vec![confinement.expression(), self.condition.clone()]),
            None => self.condition.clone(),
        }
    }
}

impl Questions {
    /// Takes out the question that is to go on, and drops those of which the asker is gone. Tenants take turns, payers of a tenant take the
    /// turns of that, and of one payer's questions a new one goes before those that have begun.
    fn next(&mut self) -> Option<Querying> {
        self.waiting.retain(|querying| !querying.reply.is_closed());
        let last_turn = |is_of: &dyn Fn(&LiveQuestion) -> bool| {
            self.waiting.iter().filter(|other| is_of(&other.question)).map(|other| other.turn).max()
        };
        let (index, _) = self.waiting.iter().enumerate().min_by_key(|(_, querying)| {
            let LiveQuestion { tenant, payer, .. } = &querying.question;
            let of_tenant = last_turn(&|other| other.tenant == *tenant);
            let of_payer = last_turn(&|other| other.payer == *payer);
            (of_tenant, of_payer, querying.turn)
        })?;
        self.turns += 1;
        Some(Querying { turn: self.turns, ..self.waiting.remove(index) })
    }
}

impl Sessions {
    /// Begins to find live events, in slices between which other commands are carried out. `change` is held until that has ended.
    pub(crate) fn query(
        &mut self,
        question: LiveQuestion,
        change: Option<Change>,
        reply: oneshot::Sender<Result<LivePage, ApiError>>,
    ) {
        self.queries.waiting.push(Querying { question, _change: change, reply, turn: 0, begun: None });
    }

    /// Whether there is more to find.
    pub(super) fn is_querying(&self) -> bool {
        !self.queries.waiting.is_empty()
    }

    /// Goes on with a question, if one is under way, for about so long as others can wait.
    pub(crate) fn query_some(&mut self) {
        let Some(mut querying) = self.queries.next() else { return };
        let began = clock::now();
        let payer = Payer::Name(Arc::clone(&querying.question.payer));
        match self.look_into(&mut querying) {
            Ok(None) => self.queries.waiting.push(querying),
            // Whoever asked may be gone.
            Ok(Some(page)) => drop(querying.reply.send(Ok(page))),
            Err(refusal) => drop(querying.reply.send(Err(refusal))),
        }
        self.paid_by(payer);
        self.charge(self.worked(clock::now().saturating_duration_since(began)), Duration::ZERO);
    }

    /// Looks into a question for a slice; gives the answer if it has come to its end.
    fn look_into(&self, querying: &mut Querying) -> Result<Option<LivePage>, ApiError> {
        let question = &querying.question;
        let mut client = None;
        if let Some((name, _)) = &question.client {
            self.check_confinement(name, question.confinement.as_ref())?;
            let Some(id) = self.ids.get(name).copied() else { return Ok(Some(NOTHING)) };
            client = Some(ClientId(id));
        }
        let (query, of) = querying.begun.get_or_insert_with(|| (self.begin_query(question, client), client));
        if *of != client {
            // The client was deleted since, and another one of its name has come.
            return Ok(Some(NOTHING));
        }
        let ends = self.tracker.work_count() + SLICE_WORK;
        // Two tenants may meet in one part of the tracker's world.
        let takes = |event: &Event, _: &Arc<Published>| tenant::of(event) == &*question.tenant;
        if !self.tracker.look_into(query, takes, || self.tracker.work_count() < ends) {
            return Ok(None);
        }
        Ok(querying.begun.take().map(|(query, _)| self.tracker.answer(query)))
    }

    fn begin_query(&self, question: &LiveQuestion, client: Option<ClientId>) -> Query {
        let to_itself = question.client.as_ref().is_some_and(|(_, to_itself)| *to_itself);
        let view = |id| {
            if to_itself {
                return (id, View::Own);
            }
            // To others the answer is what it would be at the place that they are shown: what its areas hold tells where they are.
            let shown = self.tracker.fix(id).and_then(|fix| Some((self.shown(fix)?, *fix)));
            let fix = shown.map(|(position, fix)| matcher::live::Fix { position, ..fix });
            match self.watches_without_routes(id) {
                Some(watches) => (id, View::Instead(watches, fix)),
                None => (id, View::From(fix)),
            }
        };
        self.tracker.query(Wanted {
            partition: self.partition(&question.tenant),
            within: question.within.clone(),
            condition: question.condition(),
            client: client.map(view),
            after: question.after,
            most: question.most,
        })
    }

    /// Says where a client is, to itself or to somebody else.
    pub(crate) fn locate(&self, name: &str, to_itself: bool) -> Located {
        if !to_itself && self.rounding.is_none() {
            return Located::Withheld;
        }
        let Some(id) = self.ids.get(name).copied() else { return Located::Nowhere };
        let Some(fix) = self.tracker.fix(ClientId(id)) else { return Located::Nowhere };
        let Some(position) = (if to_itself { Some(fix.position) } else { self.shown(fix) }) else {
            return Located::Withheld;
        };
        let accuracy_m = Some(fix.accuracy_m).filter(|metres| to_itself && *metres > 0.0);
        let told_ms = self.clients.get(id).and_then(|client| client.positioned_ms);
        Located::At { position, accuracy_m, told_ms }
    }
}

const NOTHING: LivePage = Page { events: Vec::new(), next: None };

#[cfg(test)]
mod tests {
    use matcher::condition::Condition;
    use matcher::geo::World;
    use matcher::live::Rectangle;

    use super::super::tests::Bench;
    use super::*;
    use crate::ingest::Zones;

    type Answer = oneshot::Receiver<Result<LivePage, ApiError>>;

    fn question(payer: &str, condition: &str) -> LiveQuestion {
        LiveQuestion {
            tenant: "".into(),
            within: Within::Everywhere,
            condition: Condition::parse_expression(World::Geodetic, condition).unwrap(),
            client: None,
            confinement: None,
            after: None,
            most: 10,
            payer: payer.into(),
        }
    }

    fn ask(bench: &mut Bench, question: LiveQuestion) -> Answer {
        let (reply, answer) = oneshot::channel();
        bench.sessions.query(question, None, reply);
        answer
    }

    /// A bench with many live events at one place.
    fn bench(count: u32) -> Bench {
        let mut bench = Bench::with(None, |config| config.limits.clients = 10);
        for number in 0..count {
            bench.publish_with(&format!(r#","id":{number},"ttl_s":600,"properties":{{"level":{number}}}"#));
        }
        bench
    }

    #[test]
    fn others_go_on_while_much_is_looked_through_and_the_asker_pays() {
        let mut bench = bench(20_000);
        bench.move_to("asker", 0.0);
        let mut answer = ask(&mut bench, question("asker", "level < 0"));
        let mut slices = 0;
        while bench.sessions.is_querying() {
            assert!(
                bench.sessions.next_deadline().is_some_and(|at| at <= bench.sessions.started),
                "it goes on at once"
            );
            let begun = bench.sessions.tracker.work_count();
            bench.sessions.query_some();
            let work = bench.sessions.tracker.work_count() - begun;
            assert!(work <= SLICE_WORK + 64, "{work}");
            slices += 1;
            // The move of another is in force before there is an answer.
            bench.move_to("other", f64::from(slices));
            let id = ClientId(bench.sessions.ids["other"]);
            assert_eq!(bench.sessions.tracker.fix(id).unwrap().position.x(), f64::from(slices));
        }
        assert!(slices >= 20_000 / (i32::try_from(SLICE_WORK).unwrap() + 64), "{slices}");
        assert!(answer.try_recv().unwrap().unwrap().events.is_empty());
        let cost = |name: &str| {
            let id = bench.sessions.ids[name];
            bench.sessions.clients.get(id).unwrap().costs.total_ms()
        };
        assert!(cost("asker") > 0 && cost("asker") > cost("other"), "{} {}", cost("asker"), cost("other"));
    }

    #[test]
    fn questions_take_turns_and_nobody_looks_for_who_is_gone() {
        let mut bench = bench(9_000);
        let mut answers: Vec<_> = (0..20).map(|_| ask(&mut bench, question("asker", "level < 0"))).collect();
        drop(answers.split_off(19));
        let mut order = Vec::new();
        while bench.sessions.is_querying() {
            bench.sessions.query_some();
            let done = |(index, answer): (usize, &mut Answer)| answer.try_recv().is_ok().then_some(index);
            order.extend(answers.iter_mut().enumerate().filter_map(done));
        }
        assert_eq!(order, (0..19).collect::<Vec<_>>());
    }

    #[test]
    fn many_questions_of_one_hold_up_nobody_elses() {
        let mut bench = bench(9_000);
        let of = |tenant: &str, payer: &str| LiveQuestion {
            tenant: tenant.into(),
            payer: tenant::inside(tenant, payer).into(),
            ..question("", "level < 0")
        };
        // Who is alone in a tenant, or alone as a payer, waits for one slice of the others between two of its own.
        for (flood, alone) in [(of("", "greedy"), of("", "modest")), (of("", "greedy"), of("acme", "modest"))]
        {
            let again = || LiveQuestion {
                tenant: Arc::clone(&flood.tenant),
                payer: Arc::clone(&flood.payer),
                ..of("", "")
            };
            let mut others: Vec<_> = (0..12).map(|_| ask(&mut bench, again())).collect();
            (0..12).for_each(|_| bench.sessions.query_some());
            let mut answer = ask(&mut bench, alone);
            let slices = 9_000 / i32::try_from(SLICE_WORK).unwrap() + 1;
            (0..2 * slices).for_each(|_| bench.sessions.query_some());
            assert!(answer.try_recv().is_ok_and(|page| page.is_ok()));
            assert!(others.iter_mut().all(|other| other.try_recv().is_err()), "none of these had as many");
            // Where all are gone, nothing is looked for.
            drop(others);
            bench.sessions.query_some();
            assert!(!bench.sessions.is_querying());
        }
    }

    #[test]
    fn what_the_asker_is_confined_to_counts() {
        let mut bench = Bench::with(None, |_| {});
        let text = "abcdefgh".repeat(1_000);
        for number in 0..200 {
            bench.publish_with(&format!(r#","id":{number},"ttl_s":600,"properties":{{"a":"{text}"}}"#));
        }
        let costly: Vec<_> = (0..8).map(|number| format!("CASEI(a) LIKE CASEI('%_{number}_x%')")).collect();
        let claim = serde_json::json!({"where": costly.join(" OR ")});
        let confinement = Confinement::read(&claim, &Zones::default()).unwrap().map(Arc::new);
        let mut answer = ask(&mut bench, LiveQuestion { confinement, ..question("asker", "TRUE") });
        let mut slices = 0;
        while bench.sessions.is_querying() {
            bench.sessions.query_some();
            slices += 1;
        }
        // A look at each alone would be one slice.
        assert!(slices > 10, "{slices}");
        assert!(answer.try_recv().unwrap().unwrap().events.is_empty());
    }

    #[test]
    fn a_page_of_few_among_many_takes_one_slice() {
        let mut bench = bench(9_000);
        let mut few = question("asker", "level >= 0");
        few.within = Within::Rectangle(Rectangle::new(World::Planar, [0.0, 0.0, 0.0, 0.0]).unwrap());
        let mut answer = ask(&mut bench, few);
        bench.sessions.query_some();
        assert!(!bench.sessions.is_querying(), "a page of ten among thousands at one place takes one slice");
        let page = answer.try_recv().unwrap().unwrap();
        assert_eq!((page.events.len(), page.next.is_some()), (10, true));
    }
}
