//! The broker's calls for checks, rule sets and group definitions, which are alike.

use reqwest::Method;
use serde::Serialize;
use wire::{Check, ExplainedObject, GroupDefinition, RuleSet};

use crate::{
    Broker, Error, Feature,
    broker::read,
    http::{Body, encoded},
};

/// Writes the calls of a kind, with what one of it is called, the type of its documents, where they are, and the names of its calls.
macro_rules! calls {
    (
        $noun:tt, $Document:ident, $all:tt:
        $list:ident, $get:ident, $put:ident, $findings:ident, $pause:ident, $resume:ident, $delete:ident
    ) => {
        impl Broker {
            #[doc = concat!("All ", $noun, "s of the tenant, by name; takes a token with the scope admin, as do the other calls for ", $noun, "s.")]
            ///
            /// # Errors
            /// [`Error::Problem`], [`Error::Connection`], and [`Error::Timeout`].
            pub async fn $list(&self) -> Result<Vec<$Document>, Error> {
                self.get($all).await
            }

            #[doc = concat!("A ", $noun, " as the broker has it, with what it does.")]
            ///
            /// # Errors
            /// [`Error::Problem`] with `not-found` where there is none, [`Error::Connection`], and [`Error::Timeout`].
            pub async fn $get(&self, name: &str) -> Result<$Document, Error> {
                self.get(&path($all, name)).await
            }

            #[doc = concat!(
                "Puts a ", $noun, " in force, in the place of one of the same name: a [`", stringify!($Document), "`], or what serialises as one."
            )]
            ///
            /// # Errors
            /// [`Error::Problem`] with what is wrong with the document, [`Error::Connection`], and [`Error::Timeout`].
            pub async fn $put(&self, name: &str, document: &impl Serialize) -> Result<$Document, Error> {
                read(&self.call(Method::PUT, &path($all, name), Some(Body::json(document)?)).await?)
            }

            #[doc = concat!("The newest 1,000 findings of a ", $noun, ", the newest first: events that it published, or violations that it marked or dropped.")]
            ///
            /// # Errors
            /// [`Error::Problem`] with `not-found` where there is none, [`Error::Connection`], and [`Error::Timeout`].
            pub async fn $findings(&self, name: &str) -> Result<Vec<Feature>, Error> {
                self.get(&format!("{}/findings", path($all, name))).await
            }

            #[doc = concat!("Lets the inputs of a ", $noun, " wait.")]
            ///
            /// # Errors
            /// [`Error::Problem`] with `not-found` where there is none, [`Error::Connection`], and [`Error::Timeout`].
            pub async fn $pause(&self, name: &str) -> Result<(), Error> {
                self.call(Method::POST, &format!("{}/pause", path($all, name)), None).await.map(drop)
            }

            #[doc = concat!("Goes on with the inputs of a ", $noun, " that was paused.")]
            ///
            /// # Errors
            /// [`Error::Problem`] with `not-found` where there is none, [`Error::Connection`], and [`Error::Timeout`].
            pub async fn $resume(&self, name: &str) -> Result<(), Error> {
                self.call(Method::POST, &format!("{}/resume", path($all, name)), None).await.map(drop)
            }

            #[doc = concat!("Ends a ", $noun, ".")]
            ///
            /// # Errors
            /// [`Error::Problem`] with `not-found` where there is none, [`Error::Connection`], and [`Error::Timeout`].
            pub async fn $delete(&self, name: &str) -> Result<(), Error> {
                self.call(Method::DELETE, &path($all, name), None).await.map(drop)
            }
        }
    };
}

calls!(
    "check", Check, "/v1/checks":
    checks, check, put_check, check_findings, pause_check, resume_check, delete_check
);
calls!(
    "group definition", GroupDefinition, "/v1/groups":
    group_definitions, group_definition, put_group_definition, group_definition_findings, pause_group_definition,
    resume_group_definition, delete_group_definition
);
calls!(
    "rule set", RuleSet, "/v1/rules":
    rule_sets, rule_set, put_rule_set, rule_set_findings, pause_rule_set, resume_rule_set, delete_rule_set
);

impl Broker {
    /// Why a live object, by its key, else its id, is in groups of a definition or in none; takes a token with the scope admin.
    ///
    /// # Errors
    /// [`Error::Problem`] with `not-found` where it is no candidate, [`Error::Connection`], and [`Error::Timeout`].
    pub async fn explain_object(&self, name: &str, object: &str) -> Result<ExplainedObject, Error> {
        self.get(&format!("{}/objects/{}", path("/v1/groups", name), encoded(object))).await
    }
}

fn path(all: &str, name: &str) -> String {
    format!("{all}/{}", encoded(name))
}
