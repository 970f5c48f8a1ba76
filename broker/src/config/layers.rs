//! Layers of settings: the defaults, a file, the environment and flags, later ones over earlier ones.

use figment::error::Kind;
use figment::providers::{Format, Toml};
use figment::value::{Dict, Map, Num, Tag, Value};
use figment::{Figment, Metadata, Profile, Provider};

use super::{ConfigError, DEFAULT_TOML, Sources};

/// Prefix of the names of environment variables.
const ENVIRONMENT_PREFIX: &str = "BROKER__";

/// Puts the layers together; keys and types are right then, values may not be.
pub(super) fn assemble(sources: &Sources) -> Result<Figment, ConfigError> {
    let Sources { file, environment, flags } = sources;
    let mut figment = defaults();
    if let Some(path) = file {
        if !path.is_file() {
            return Err(ConfigError { faults: vec![format!("there is no file {}", path.display())] });
        }
        figment = figment.merge(Toml::file_exact(path));
    }
    over(figment, environment, flags)
}

/// Puts the environment and the flags over a file's settings.
pub(super) fn over(
    mut figment: Figment,
    environment: &[(String, String)],
    flags: &[(&'static str, Value)],
) -> Result<Figment, ConfigError> {
    for (name, value) in environment {
        let Some(key) = name.strip_prefix(ENVIRONMENT_PREFIX) else { continue };
        let key = key.to_lowercase().replace("__", ".");
        let value = value.parse().unwrap_or_else(|_| Value::from(value.as_str()));
        figment = figment.merge(Single { origin: format!("environment variable {name}"), key, value });
    }
    for (key, value) in flags {
        figment = figment.merge(Single {
            origin: "command line".to_owned(),
            key: (*key).to_owned(),
            value: value.clone(),
        });
    }
    let faults = unknown_and_mistyped(&figment);
    if faults.is_empty() { Ok(figment) } else { Err(ConfigError { faults }) }
}

/// The settings that are in force, each under its explanation: `config/default.toml` with other values.
///
/// # Errors
/// Fails as [`Config::load`](super::Config::load) does.
pub fn explain(sources: &Sources) -> Result<String, ConfigError> {
    Ok(explained(&assemble(sources)?))
}

pub(super) fn explained(figment: &Figment) -> String {
    let mut text = String::new();
    let mut section = "";
    for line in DEFAULT_TOML.lines() {
        let shown = match line.split_once(" = ") {
            Some((key, _)) if !line.starts_with('#') => {
                let value = figment.find_value(&format!("{section}.{key}")).ok();
                value.and_then(|value| Some(format!("{key} = {}", literal(&value)?)))
            }
            _ => None,
        };
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name;
        }
        text.push_str(shown.as_deref().unwrap_or(line));
        text.push('\n');
    }
    text
}

/// The layer that is compiled in.
pub(super) fn defaults() -> Figment {
    Figment::from(Toml::string(DEFAULT_TOML))
}

/// One setting from somewhere.
struct Single {
    origin: String,
    key: String,
    value: Value,
}

impl Provider for Single {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.origin.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let nested = self
            .key
            .rsplit('.')
            .fold(self.value.clone(), |value, key| Value::from(Dict::from([(key.to_owned(), value)])));
        let dict = nested.into_dict().unwrap_or_default();
        Ok(Map::from([(Profile::Default, dict)]))
    }
}

/// A whole number, 0 or more.
fn natural(value: &Value) -> Option<u128> {
    value.to_u128().or_else(|| u128::try_from(value.to_i128()?).ok())
}

/// Whether it is a whole number. Which type of number holds it is up to its source: a file gives signed ones, the environment others.
fn is_whole(value: &Value) -> bool {
    value.to_i128().is_some() || value.to_u128().is_some()
}

/// A value as TOML writes it.
fn literal(value: &Value) -> Option<String> {
    match value {
        // JSON's texts are TOML's basic strings.
        Value::String(_, text) => serde_json::to_string(text).ok(),
        Value::Bool(_, truth) => Some(truth.to_string()),
        Value::Num(_, Num::F64(number)) => Some(format!("{number:?}")),
        Value::Num(..) => {
            natural(value).map(|number| number.to_string()).or_else(|| Some(value.to_i128()?.to_string()))
        }
        Value::Char(..) | Value::Empty(..) | Value::Dict(..) | Value::Array(..) => None,
    }
}

/// Compares what was put together with the defaults, whose keys are all there are. serde would stop at the first.
fn unknown_and_mistyped(figment: &Figment) -> Vec<String> {
    let known =
        defaults().data().ok().and_then(|mut data| data.remove(&Profile::Default)).unwrap_or_default();
    let given = match figment.data() {
        Ok(mut data) => data.remove(&Profile::Default).unwrap_or_default(),
        Err(error) => return error.into_iter().map(|one| one.to_string()).collect(),
    };
    let mut faults = Vec::new();
    compare(figment, &known, &given, "", &mut faults);
    faults
}

fn compare(figment: &Figment, known: &Dict, given: &Dict, path: &str, faults: &mut Vec<String>) {
    for (key, value) in given {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match (known.get(key), value) {
            (None, _) => {
                faults.push(format!(
                    "{path} is not a setting{}{}",
                    origin(figment, value.tag()),
                    meant(&path)
                ));
            }
            (Some(Value::Dict(_, known)), Value::Dict(_, given)) => {
                compare(figment, known, given, &path, faults);
            }
            (Some(default), value) => {
                let right = match default {
                    Value::String(..) => matches!(value, Value::String(..)),
                    Value::Bool(..) => matches!(value, Value::Bool(..)),
                    Value::Num(_, Num::F64(_)) => matches!(value, Value::Num(..)),
                    // One that has a default below 0 may be below 0.
                    Value::Num(..) if natural(default).is_none() => is_whole(value),
                    Value::Num(..) => natural(value).is_some(),
                    Value::Dict(..) => false,
                    Value::Char(..) | Value::Empty(..) | Value::Array(..) => true,
                };
                if !right {
                    let kind = match default {
                        Value::String(..) => "a text",
                        Value::Bool(..) => "true or false",
                        Value::Num(_, Num::F64(_)) => "a number",
                        Value::Num(..) if natural(default).is_none() => "a whole number",
                        Value::Num(..) => "a whole number, 0 or more",
                        Value::Dict(..) => "a section",
                        Value::Char(..) | Value::Empty(..) | Value::Array(..) => "something else",
                    };
                    faults.push(format!("{path} must be {kind}{}", origin(figment, value.tag())));
                }
            }
        }
    }
}

/// The advice for a setting that does not exist: the name that is nearest, or the one of another section.
fn meant(path: &str) -> String {
    let defaults =
        defaults().data().ok().and_then(|mut data| data.remove(&Profile::Default)).unwrap_or_default();
    let mut names = Vec::new();
    for (section, value) in &defaults {
        names.push(section.clone());
        let keys = value.as_dict().into_iter().flat_map(Dict::keys);
        names.extend(keys.map(|key| format!("{section}.{key}")));
    }
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let found = nearest(path, names.iter().map(String::as_str)).map(str::to_owned);
    let found = found.or_else(|| names.iter().find(|name| last(name) == last(path)).cloned());
    found.map(|name| format!(": did you mean {name}?")).unwrap_or_default()
}

/// The name that is misspelt so, if one is near.
fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distances = names.map(|name| (strsim::osa_distance(text, name), name));
    let allowed = (text.chars().count() / 4).clamp(1, 3);
    distances
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= allowed)
        .map(|near| near.1)
}

/// An error of the layers without the library's words for a choice that does not exist.
pub(super) fn told(error: &figment::Error) -> String {
    let Kind::UnknownVariant(found, choices) = &error.kind else { return error.to_string() };
    let path = error.path.join(".");
    let origin = error.metadata.as_ref().map(of_metadata).unwrap_or_default();
    let meant = nearest(found, choices.iter().copied());
    let meant = meant.map(|name| format!(": did you mean {name}?")).unwrap_or_default();
    format!("{path} is {found:?}, and can be {}{origin}{meant}", choices.join(", "))
}

/// Where a value came from, for the message.
fn origin(figment: &Figment, tag: Tag) -> String {
    figment.get_metadata(tag).map_or_else(String::new, of_metadata)
}

fn of_metadata(metadata: &Metadata) -> String {
    match &metadata.source {
        Some(source) => format!(" (in {source})"),
        None => format!(" (in {})", metadata.name),
    }
}
