//! An event by flags.

use std::time::Duration;

use clap::{Args, ValueEnum};
use nearcast_client::{Coordinates, Feature, event};
use serde_json::{Map, Value};

use crate::values::{self, Setting};

/// What an event can be told.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "An event")]
pub(crate) struct EventFlags {
    /// Where it happens
    #[arg(long, value_name = "LON,LAT", value_parser = values::place, allow_hyphen_values = true)]
    pub(crate) at: Option<Coordinates>,
    /// An attribute, again for each: a number, true, a text, or other JSON
    #[arg(long, value_name = "NAME=VALUE", value_parser = values::setting, requires = "at")]
    set: Vec<Setting>,
    /// Its name
    #[arg(long, requires = "at")]
    id: Option<String>,
    /// The object that it is about: a newer event of it takes this one's place
    #[arg(long, requires = "at")]
    key: Option<String>,
    /// For how long it stays live, such as 10m
    #[arg(long, value_name = "TIME", value_parser = values::time, requires = "at")]
    ttl: Option<Duration>,
    /// How far it reaches: clients that are further away do not get it
    #[arg(long, value_name = "METRES", value_parser = values::metres, allow_negative_numbers = true, requires = "at")]
    reach: Option<f64>,
    /// An alarm is taken when others are refused, and delivered before them
    #[arg(long, requires = "at")]
    priority: Option<Priority>,
    /// When it happened, RFC 3339; else the time of its arrival
    #[arg(long, value_name = "WHEN", requires = "at")]
    time: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Priority {
    Normal,
    Alarm,
}

impl EventFlags {
    /// The place, if one was given.
    pub(crate) fn at(&self) -> Option<Coordinates> {
        self.at
    }

    /// The event, where a place was given.
    pub(crate) fn feature(&self) -> Option<Feature> {
        let properties = self.set.iter().map(|set| (set.name.clone(), set.value.clone()));
        let mut feature = event(self.at?, Value::Object(properties.collect::<Map<_, _>>()));
        feature.id = self.id.clone().map(Into::into);
        feature.key.clone_from(&self.key);
        feature.ttl_s = self.ttl.map(|ttl| ttl.as_secs_f64());
        feature.reach_m = self.reach;
        feature.time.clone_from(&self.time);
        let name = self.priority.and_then(|priority| priority.to_possible_value());
        feature.priority = name.map(|name| name.get_name().to_owned());
        Some(feature)
    }
}
