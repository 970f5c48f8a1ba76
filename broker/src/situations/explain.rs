//! What situations have to do with an event that somebody asks about.

use serde::Deserialize;
use wire::{ExplainedCheck, ExplainedDerivation, ExplainedObject};

use super::{Kind, Owner, Situations, may_know, none};
use crate::ingest::Behalf;
use crate::ingest::feature::{Observed, Rehearsed};
use crate::model::error::ApiError;

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
        let answer = {
            let all = self.all();
            let runner = all.get(&situation.key).and_then(|served| served.runner.as_ref());
            runner.ok_or_else(|| none(Kind::Groups, name))?.why(object.to_owned())
        };
        let explained = answer.await?;
        explained.ok_or_else(|| {
            let detail = format!("{object} is no candidate of groups/{name}: no live event with this key, or id, satisfies the condition of a role");
            ApiError::NotFound(detail)
        })
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
