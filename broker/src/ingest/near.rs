//! Names that are nearly the name of a known member, and the known member that they probably mean.

use wire::Fault;

use super::json::{self, Members};
use crate::model::problems::WarningKind;

/// The members of one kind of object, and other words that people have for them.
pub(crate) struct Vocabulary {
    known: &'static [&'static str],
    /// Words in small letters without separators, each with the member that it means.
    synonyms: &'static [(&'static str, &'static str)],
}

/// Members of an event.
pub(crate) const EVENT: Vocabulary = Vocabulary {
    known: &[
        "type",
        "geometry",
        "properties",
        "id",
        "time",
        "reach_m",
        "priority",
        "ttl_s",
        "key",
        "deadline_ms",
    ],
    synonyms: &[
        ("ttl", "ttl_s"),
        ("ttlms", "ttl_s"),
        ("ttlsec", "ttl_s"),
        ("ttlseconds", "ttl_s"),
        ("timetolive", "ttl_s"),
        ("reach", "reach_m"),
        ("reachkm", "reach_m"),
        ("radius", "reach_m"),
        ("radiusm", "reach_m"),
        ("timestamp", "time"),
        ("deadline", "deadline_ms"),
        ("deadlines", "deadline_ms"),
        ("prio", "priority"),
        ("attributes", "properties"),
        ("props", "properties"),
        ("geom", "geometry"),
    ],
};

/// Members of a position.
pub(crate) const POSITION: Vocabulary = Vocabulary {
    known: &["client", "coordinates", "track", "accuracy_m", "time"],
    synonyms: &[
        ("accuracy", "accuracy_m"),
        ("accuracymeters", "accuracy_m"),
        ("precision", "accuracy_m"),
        ("timestamp", "time"),
        ("path", "track"),
    ],
};

/// Members of a subscription.
pub(crate) const SUBSCRIPTION: Vocabulary = Vocabulary {
    known: &["id", "filters", "on", "initial", "dwell_s", "hysteresis_m", "durable", "overflow"],
    synonyms: &[
        ("filter", "filters"),
        ("dwell", "dwell_s"),
        ("dwellms", "dwell_s"),
        ("hysteresis", "hysteresis_m"),
        ("persistent", "durable"),
    ],
};

/// Members of a check, its presets' included.
pub(crate) const CHECK: Vocabulary = Vocabulary {
    known: &[
        "contexts",
        "formula",
        "clock",
        "on_violation",
        "preset",
        "object",
        "max_m_per_s",
        "property",
        "max_m",
        "for_s",
        "polygon",
        "within_m",
    ],
    synonyms: &[
        ("context", "contexts"),
        ("sets", "contexts"),
        ("rule", "formula"),
        ("constraint", "formula"),
        ("onviolation", "on_violation"),
    ],
};

/// Members of a formula.
pub(crate) const FORMULA: Vocabulary = Vocabulary {
    known: &["forall", "exists", "in", "that", "and", "or", "implies", "not"],
    synonyms: &[
        ("foreach", "forall"),
        ("all", "forall"),
        ("any", "exists"),
        ("some", "exists"),
        ("if", "implies"),
    ],
};

/// Members of a rule set.
pub(crate) const RULES: Vocabulary = Vocabulary {
    known: &["facts", "program", "clock", "publish"],
    synonyms: &[("fact", "facts"), ("rules", "program"), ("publishes", "publish"), ("events", "publish")],
};

/// Members of a group definition.
pub(crate) const GROUPS: Vocabulary = Vocabulary {
    known: &["roles", "where", "limit", "order"],
    synonyms: &[
        ("role", "roles"),
        ("conditions", "where"),
        ("condition", "where"),
        ("constraints", "where"),
        ("order_by", "order"),
        ("max", "limit"),
    ],
};

/// Members of a question for a route.
pub(crate) const ROUTE: Vocabulary = Vocabulary {
    known: &["from", "to", "deadline_ms", "coarsest", "by"],
    synonyms: &[
        ("start", "from"),
        ("origin", "from"),
        ("end", "to"),
        ("destination", "to"),
        ("deadline", "deadline_ms"),
        ("level", "coarsest"),
    ],
};

/// Members of the route of an area.
pub(crate) const ROUTE_AREA: Vocabulary = Vocabulary {
    known: &["to", "by"],
    synonyms: &[("end", "to"), ("destination", "to"), ("coordinates", "to")],
};

/// Members of what a rule set says of constraints that are published.
pub(crate) const PUBLICATION: Vocabulary = Vocabulary {
    known: &["at", "properties", "key", "ttl_s"],
    synonyms: &[
        ("ttl", "ttl_s"),
        ("place", "at"),
        ("coordinates", "at"),
        ("props", "properties"),
        ("attributes", "properties"),
    ],
};

/// Members of a filter.
pub(crate) const FILTER: Vocabulary = Vocabulary {
    known: &["area", "where"],
    synonyms: &[
        ("condition", "where"),
        ("cql2", "where"),
        ("filter", "where"),
        ("query", "where"),
        ("circle", "area"),
        ("geometry", "area"),
        ("region", "area"),
        ("within", "area"),
    ],
};

/// Members of an area.
pub(crate) const AREA: Vocabulary = Vocabulary {
    known: &["radius_m", "center", "polygon", "corridor", "route", "nearest"],
    synonyms: &[
        ("radius", "radius_m"),
        ("radiuskm", "radius_m"),
        ("meters", "radius_m"),
        ("metres", "radius_m"),
        ("distance", "radius_m"),
        ("distancem", "radius_m"),
        ("centre", "center"),
        ("coordinates", "center"),
        ("point", "center"),
        ("multipolygon", "polygon"),
        ("line", "corridor"),
        ("linestring", "corridor"),
        ("k", "nearest"),
    ],
};

/// Members of a question.
pub(crate) const QUESTION: Vocabulary = Vocabulary {
    known: &["client", "subscription", "event", "position"],
    synonyms: &[("coordinates", "position"), ("at", "position"), ("feature", "event")],
};

/// Parameters of the question what is live.
pub(crate) const LIVE_QUERY: Vocabulary = Vocabulary {
    known: &["bbox", "near", "where", "client", "limit", "after"],
    synonyms: &[
        ("bbx", "bbox"),
        ("box", "bbox"),
        ("boundingbox", "bbox"),
        ("bounds", "bbox"),
        ("nearby", "near"),
        ("filter", "where"),
        ("count", "limit"),
        ("cursor", "after"),
        ("next", "after"),
    ],
};

/// Bytes of a name beyond which it is near nothing.
const NAME_BYTES_MAX: usize = 24;

/// Foreign members of a document that are looked at, and the warnings that it gets for them, at most: neither what that takes nor the
/// answer is the sender's choice.
const FOREIGN_MAX: usize = 32;
const WARNINGS_MAX: usize = 4;

impl Vocabulary {
    /// Warnings for members that are left and probably misspelt. Members that are near to none are left alone.
    pub(crate) fn warnings(&self, members: &Members<'_>, kind: &WarningKind) -> Vec<Fault> {
        let looked_at = members.rest().take(FOREIGN_MAX);
        let near = looked_at.filter_map(|(name, _)| Some((name, self.near(name)?)));
        let warning = |(name, known): (&str, &str)| Fault {
            pointer: json::pointer("", name),
            detail: format!("`{name}` {}: did you mean {known}?", kind.text),
        };
        near.take(WARNINGS_MAX).map(warning).collect()
    }

    /// The member that a name probably means: one that differs in case and separators only, one that the name is another
    /// word for, or one from which few letters keep it. A short name is near only what it is another word for, because
    /// many other names are a letter away from it.
    pub(crate) fn near(&self, name: &str) -> Option<&'static str> {
        if name.len() > NAME_BYTES_MAX {
            return None;
        }
        let same = self.known.iter().find(|known| letters(name).eq(letters(known)));
        let synonym =
            || self.synonyms.iter().find(|(word, _)| letters(name).eq(word.chars())).map(|(_, known)| known);
        let misspelt = || self.known.iter().find(|known| is_misspelt(name, known));
        same.or_else(synonym).or_else(misspelt).copied()
    }
}

/// The characters of a name in small letters, without separators.
fn letters(name: &str) -> impl Iterator<Item = char> {
    let kept = name.chars().filter(|character| !matches!(character, '_' | '-' | ' '));
    kept.map(|character| character.to_ascii_lowercase())
}

/// Whether a name is a known one with one letter wrong, in a long name two.
fn is_misspelt(name: &str, known: &str) -> bool {
    let allowed = match known.len() {
        ..=4 => return false,
        5..=7 => 1,
        _ => 2,
    };
    // Nearly all foreign names end here, so that the distance is seldom computed.
    let shares_an_end = name.as_bytes().first() == known.as_bytes().first()
        || name.as_bytes().last() == known.as_bytes().last();
    shares_an_end
        && name.len().abs_diff(known.len()) <= allowed
        && strsim::osa_distance(name, known) <= allowed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_miss_is_told_what_it_misses() {
        for (name, known) in [
            ("ttl", "ttl_s"),
            ("ttl_ms", "ttl_s"),
            ("TTL_S", "ttl_s"),
            ("ttls", "ttl_s"),
            ("ttl-s", "ttl_s"),
            ("priorty", "priority"),
            ("pirority", "priority"),
            ("Priority", "priority"),
            ("reach", "reach_m"),
            ("reachM", "reach_m"),
            ("radius", "reach_m"),
            ("Key", "key"),
            ("timestamp", "time"),
            ("propertys", "properties"),
            ("geometri", "geometry"),
        ] {
            assert_eq!(EVENT.near(name), Some(known), "{name}");
        }
        for (vocabulary, name, known) in [
            (SUBSCRIPTION, "filter", "filters"),
            (SUBSCRIPTION, "dwell", "dwell_s"),
            (SUBSCRIPTION, "overflw", "overflow"),
            (FILTER, "wher", "where"),
            (FILTER, "condition", "where"),
            (AREA, "radius", "radius_m"),
            (AREA, "radius_km", "radius_m"),
            (AREA, "centre", "center"),
            (AREA, "ploygon", "polygon"),
            (QUESTION, "Client", "client"),
            (POSITION, "accuracy", "accuracy_m"),
            (POSITION, "coordinate", "coordinates"),
            (POSITION, "timestamp", "time"),
        ] {
            assert_eq!(vocabulary.near(name), Some(known), "{name}");
        }
    }

    #[test]
    fn foreign_names_are_near_nothing() {
        for name in [
            "bbox",
            "keys",
            "tile",
            "title",
            "source",
            "links",
            "name",
            "style",
            "tags",
            "date",
            "foreign",
            "severity",
            "types",
            "it",
            "",
            "ключ",
            "@context",
            "prioritätswert",
        ] {
            assert_eq!(EVENT.near(name), None, "{name}");
        }
        assert_eq!(EVENT.near(&"ttl_s".repeat(1_000)), None);
    }

    #[test]
    fn what_is_suggested_is_known() {
        for vocabulary in [EVENT, SUBSCRIPTION, FILTER, AREA, QUESTION] {
            for (word, known) in vocabulary.synonyms {
                assert!(vocabulary.known.contains(known), "{word}");
                assert_eq!(vocabulary.near(word), Some(*known), "{word}");
            }
        }
    }
}
