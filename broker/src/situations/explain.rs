//! What situations have to do with an event that somebody asks about.

use std::time::Duration;

use serde::Deserialize;
use wire::{ExplainedCheck, ExplainedDerivation, ExplainedObject};

use super::{Kind, Owner, Situations, may_know, none};
use crate::ingest::Behalf;
use crate::ingest::feature::{Observed, Rehearsed};
use crate::model::error::ApiError;

/// How often a situation is asked that is being replaced, and the pause between two times.
const ASKED: u32 = 50;
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// An event of a situation's.
#[derive(Deserialize)]
struct Finding {
    id: String,
    derived: Option<ExplainedDerivation>,
}

impl Situations {
    /// The checks that an event would break if it were published now.
    pub(crate) async fn explain(
        &self,
        behalf: Behalf<'_>,
        rehearsed: &Rehearsed,
        observed: &Observed,
    ) -> Vec<ExplainedCheck> {
        let held = (!rehearsed.is_alarm).then(|| self.stage.gates.hold(behalf, &rehearsed.event)).flatten();
        match held {
            Some(held) => held.rehearsed(behalf, observed).await,
            None => Vec::new(),
        }
    }

    /// Why a live object is in groups of that definition or in none.
    pub(crate) async fn why(
        &self,
        owner: Owner<'_>,
        name: &str,
        object: &str,
    ) -> Result<ExplainedObject, ApiError> {
        let situation = self.find(Kind::Groups, owner, name)?;
        for _ in 0..ASKED {
            let asked = {
                let all = self.all();
                let served = all.get(&situation.key).ok_or_else(|| none(Kind::Groups, name))?;
                served.runner.as_ref().map(|runner| runner.why(object.to_owned()))
            };
            if let Some(answer) = asked {
                match answer.await {
                    Err(ApiError::Stopping) => {}
                    answered => return answered?.ok_or_else(|| no_candidate(name, object)),
                }
            }
            // It is being replaced or deleted, or the broker stops.
            tokio::time::sleep(ASK_AGAIN).await;
        }
        Err(ApiError::Stopping)
    }

    /// How a situation came to publish the event of that id, while that is among what it found last.
    pub(crate) fn derivation(&self, owner: Owner<'_>, id: &str) -> Option<ExplainedDerivation> {
        let (version, _) = id.split_once('-')?;
        let situation = {
            let all = self.all();
            let mut situations = all.values().map(|served| &served.situation);
            let tenant = owner.behalf.tenant_name();
            situations.find(|one| *one.version == *version && *one.key.tenant == *tenant)?.clone()
        };
        if !may_know(&situation, owner) {
            return None;
        }
        situation.figures.look(|text, rule| {
            let finding: Finding =
                serde_json::from_str(text).ok().filter(|finding: &Finding| finding.id == id)?;
            Some(ExplainedDerivation { rule: rule.map(str::to_owned), ..finding.derived? })
        })
    }
}

fn no_candidate(name: &str, object: &str) -> ApiError {
    let detail = format!(
        "{object} is no candidate of groups/{name}: no live event with this key, or id, satisfies the condition of a role"
    );
    ApiError::NotFound(detail)
}
