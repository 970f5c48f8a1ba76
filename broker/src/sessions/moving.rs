//! Moves.

use std::sync::Arc;

use matcher::geo::Position;
use matcher::live::Fix;
use matcher::subscription::ClientId;

use super::{Payer, Sessions, recovery};
use crate::limits::ClientPermit;
use crate::model::error::ApiError;
use crate::model::tenant;

/// How the client of a move is known.
pub(crate) enum Mover {
    /// By this number, as long as it has not been deleted since it was told.
    Known(u32),
    /// By its name. Should it be new, it has a permit already, or else needs one.
    Named(Option<ClientPermit>),
}

impl Sessions {
    /// Tells where a client is, and which way it came. A new one fails only without a permit.
    pub(crate) fn move_client(
        &mut self,
        name: &Arc<str>,
        mover: Mover,
        fix: Fix,
        track: Option<&[Position]>,
    ) -> Result<(), ApiError> {
        let id = match mover {
            Mover::Known(number) if self.has(number, name) => number,
            Mover::Known(_) => self.enter(name, None)?,
            Mover::Named(permit) => self.enter(name, permit)?,
        };
        let now = self.heard_now();
        self.paid_by(Payer::Client { id, subscription: None });
        if let Some(client) = self.clients.get_mut(id) {
            client.heard(now);
            client.positioned_ms = Some(self.unix_ms);
            if let Some(batch) = self.ledger.record() {
                client.is_stored = true;
                batch.put_position(name, &recovery::stored_position(&fix, self.unix_ms));
            }
        }
        if tracing::enabled!(tracing::Level::TRACE)
            && let Some(position) = self.shown(&fix)
        {
            let (tenant, client) = tenant::split(name);
            tracing::trace!(tenant, client, x = position.x(), y = position.y(), "moved");
        }
        if let Some(survey) = self.survey.take() {
            self.tracker.use_survey(survey);
        }
        if let Some(track) = track {
            self.tracker.reach_along(ClientId(id), track, self.lives_now, &mut self.effects);
        }
        self.engine.move_client(ClientId(id), Some(fix.position));
        self.tracker.move_client(ClientId(id), Some(fix), self.lives_now, &mut self.effects);
        self.deal();
        self.wake_readers();
        self.follow_routes(id);
        Ok(())
    }

    /// Whether the client of this name has this number.
    fn has(&self, number: u32, name: &Arc<str>) -> bool {
        // Mostly it has its name from the connection that asks.
        let is_same = |found: &Arc<str>| Arc::ptr_eq(found, name) || found == name;
        self.clients.get(number).is_some_and(|client| is_same(&client.name))
    }
}

#[cfg(test)]
mod tests {
    use matcher::geo::World;

    use super::super::tests::Bench;
    use super::*;
    use crate::sessions::Resume;

    fn fix(x: f64) -> Fix {
        Fix { position: World::Planar.position(&[x, 0.0]).unwrap(), accuracy_m: 0.0 }
    }

    #[test]
    fn a_number_that_another_client_has_by_now_moves_the_client_of_the_name() {
        let mut bench = Bench::with(None, |_| {});
        let name: Arc<str> = "a".into();
        bench.attach("a", 1, Resume::Fresh);
        let number = bench.sessions.ids["a"];
        bench.sessions.move_client(&name, Mover::Known(number), fix(1.0), None).unwrap();
        assert!(bench.sessions.clients.get(number).unwrap().positioned_ms.is_some());
        bench.sessions.forget("a");
        bench.attach("b", 2, Resume::Fresh);
        assert_eq!(bench.sessions.ids["b"], number);
        bench.sessions.move_client(&name, Mover::Known(number), fix(2.0), None).unwrap();
        assert_eq!(bench.sessions.clients.get(number).unwrap().positioned_ms, None);
        let again = bench.sessions.ids["a"];
        assert_ne!(again, number);
        assert!(bench.sessions.clients.get(again).unwrap().positioned_ms.is_some());
    }
}
