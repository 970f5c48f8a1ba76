//! What people type who know other languages, and how it is written here.

/// The advice for a character with which no token begins, and what follows it.
pub(super) fn of_character(character: char, rest: &str) -> Option<&'static str> {
    Some(match character {
        '!' if rest.starts_with('=') => "did you mean <>?",
        '!' => "did you mean NOT?",
        '&' => "did you mean AND?",
        '|' => "did you mean OR?",
        '≠' => "did you mean <>?",
        '≤' => "did you mean <=?",
        '≥' => "did you mean >=?",
        '~' => "did you mean LIKE? Its wildcards are % and _",
        '‘' | '’' | '“' | '”' | '„' | '«' | '»' | '`' => {
            "a text takes straight single quotes: '..'"
        }
        '[' | '{' => "did you mean (..)? A list takes parentheses",
        _ => return None,
    })
}

/// The advice for a token where another one is expected, by how it and the one before it are written.
pub(super) fn of_token(previous: &str, found: &str) -> Option<&'static str> {
    const PATTERN: &str = "did you mean LIKE? Its wildcards are % and _";
    let previous = previous.to_ascii_lowercase();
    Some(match (previous.as_str(), found.to_ascii_lowercase().as_str()) {
        ("=", "=") => "did you mean =?",
        ("=", ">") => "did you mean >=?",
        ("=", "<") => "did you mean <=?",
        ("not", "=") => "did you mean <>?",
        ("is" | "not", "true" | "false") => "a truth value is tested with = TRUE or = FALSE",
        (_, "eq" | "equals") => "did you mean =?",
        (_, "ne" | "neq") => "did you mean <>?",
        (_, "gt") => "did you mean >?",
        (_, "ge" | "gte") => "did you mean >=?",
        (_, "lt") => "did you mean <?",
        (_, "le" | "lte") => "did you mean <=?",
        (_, "ilike") => "did you mean LIKE with CASEI(..) on both sides?",
        (_, "contains" | "matches" | "startswith" | "endswith") => PATTERN,
        (_, "exists") => "did you mean IS NOT NULL?",
        _ => return None,
    })
}

/// The name that is nearest to a misspelt one, if it is near.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Longer names are not looked at: what is near to one of ours is as short.
    const LENGTH_MAX: usize = 32;
    if name.len() > LENGTH_MAX {
        return None;
    }
    let folded = name.to_ascii_lowercase();
    let distance = |known: &str| strsim::osa_distance(&folded, &known.to_ascii_lowercase());
    let (near, known) =
        known.into_iter().map(|known| (distance(known), known)).min_by_key(|(near, _)| *near)?;
    (near <= 1 + name.len() / 4 && near < known.len()).then_some(known)
}
