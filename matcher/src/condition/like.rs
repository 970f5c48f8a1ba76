//! `LIKE` patterns: `%` is any text, `_` any one character, `\` takes the next one literally.
//!
//! A pattern of plain pieces between `%` is matched piece by piece, the leftmost place first, with the
//! standard library's linear search. One with `_` or `\` is an automaton whose states are the bits of a few
//! words. Neither goes back in the text.

/// The most characters that a pattern may have, wildcards and escapes included.
pub const PATTERN_CHARS_MAX: usize = 255;

/// Words that hold one bit for each number of characters that can have been matched, 0 to
/// [`PATTERN_CHARS_MAX`].
const STATE_WORDS: usize = (PATTERN_CHARS_MAX + 1).div_ceil(64);

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    source: Box<str>,
    /// For patterns with `_` or `\` only, so that the usual ones stay small.
    automaton: Option<Box<Automaton>>,
}

/// Why a text is not a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// More than [`PATTERN_CHARS_MAX`].
    #[error("the LIKE pattern has {found} characters, at most {PATTERN_CHARS_MAX} are allowed")]
    TooLong {
        /// Characters found.
        found: usize,
    },
    /// The last character is a `\` with nothing after it.
    #[error("the LIKE pattern ends in a single '\\', which takes the next character literally")]
    DanglingEscape,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// [`PatternError`] when it is too long or ends in the middle of an escape.
    pub fn new(source: &str) -> Result<Self, PatternError> {
        let found = source.chars().count();
        if found > PATTERN_CHARS_MAX {
            return Err(PatternError::TooLong { found });
        }
        let automaton =
            if source.contains(['_', '\\']) { Some(Box::new(Automaton::new(source)?)) } else { None };
        Ok(Self { source: source.into(), automaton })
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Whether the whole text fits the pattern.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        match &self.automaton {
            Some(automaton) => automaton.matches(text),
            None => matches_pieces(&self.source, text),
        }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Pattern {}

/// A pattern without `_` and escapes. Each inner piece takes its leftmost place: what fits with a later
/// place fits with this one too.
fn matches_pieces(pattern: &str, text: &str) -> bool {
    let Some((first, others)) = pattern.split_once('%') else {
        return pattern == text;
    };
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let (inner, last) = others.rsplit_once('%').unwrap_or(("", others));
    for piece in inner.split('%') {
        match rest.find(piece) {
            Some(place) => rest = &rest[place + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The states of the automaton that a text can be in: bit n says that the first n characters of the pattern
/// are matched.
type States = [u64; STATE_WORDS];

/// What each step of the pattern accepts, as bits: bit n is about the step from state n to n + 1.
#[derive(Clone, Debug)]
struct Automaton {
    /// Steps, `%` not counted.
    steps_count: usize,
    /// Steps that accept every character: `_`.
    any: States,
    /// States that a character need not leave: a `%` stands there.
    stay: States,
    /// The characters of the pattern in ascending order, each with the steps that accept it.
    letters: Box<[(char, States)]>,
}

impl Automaton {
    fn new(source: &str) -> Result<Self, PatternError> {
        let (mut steps_count, mut any, mut stay) = (0, States::default(), States::default());
        let mut letters: Vec<(char, States)> = Vec::new();
        let mut characters = source.chars();
        while let Some(character) = characters.next() {
            let letter = match character {
                '%' => {
                    set(&mut stay, steps_count);
                    continue;
                }
                '_' => None,
                '\\' => Some(characters.next().ok_or(PatternError::DanglingEscape)?),
                letter => Some(letter),
            };
            match letter {
                None => set(&mut any, steps_count),
                Some(letter) => {
                    let place = letters.binary_search_by_key(&letter, |(known, _)| *known);
                    let place = place.unwrap_or_else(|place| {
                        letters.insert(place, (letter, States::default()));
                        place
                    });
                    set(&mut letters[place].1, steps_count);
                }
            }
            steps_count += 1;
        }
        Ok(Self { steps_count, any, stay, letters: letters.into() })
    }

    fn matches(&self, text: &str) -> bool {
        let mut states = States::default();
        set(&mut states, 0);
        for character in text.chars() {
            let own = self.letters.binary_search_by_key(&character, |(known, _)| *known);
            let own = own.map_or(States::default(), |place| self.letters[place].1);
            let mut carry = 0;
            for word in 0..STATE_WORDS {
                let stepping = states[word] & (own[word] | self.any[word]);
                states[word] = (stepping << 1) | carry | (states[word] & self.stay[word]);
                carry = stepping >> 63;
            }
            if states == States::default() {
                return false;
            }
        }
        states[self.steps_count / 64] & (1 << (self.steps_count % 64)) != 0
    }
}

fn set(states: &mut States, bit: usize) {
    states[bit / 64] |= 1 << (bit % 64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, fitting: &[&str], other: &[&str]) {
        let pattern = Pattern::new(source).unwrap_or_else(|error| panic!("{source}: {error}"));
        for text in fitting {
            assert!(pattern.matches(text), "{source} {text}");
        }
        for text in other {
            assert!(!pattern.matches(text), "{source} {text}");
        }
    }

    #[test]
    fn wildcards() {
        check("", &[""], &["a"]);
        check("%", &["", "a", "\n漢"], &[]);
        check("%%", &["", "a"], &[]);
        check("_", &["a", "漢", "🚗", "\n"], &["", "ab", "e\u{301}"]);
        check("a%", &["a", "ab"], &["", "ba"]);
        check("%a", &["a", "ba", "aa"], &["", "ab"]);
        check("%ab%", &["ab", "xaby", "aab"], &["a", "ba", "axb"]);
        check("a%a", &["aa", "aba"], &["a", "ab"]);
        check("ab%ba", &["abba", "abxba"], &["aba"]);
        check("%a%b%", &["ab", "xaxbx"], &["ba"]);
        check("_%", &["a", "ab"], &[""]);
        check("%_", &["a", "ab"], &[""]);
        check("_%_", &["ab", "abc"], &["a"]);
        check("a_c%", &["abc", "a漢cd"], &["ac", "abbc"]);
        check("%a_b%c", &["aab_c", "xaxbxc", "aaxbbc"], &["abc", "aabd"]);
    }

    #[test]
    fn escapes() {
        check("100\\%", &["100%"], &["100", "1000", "100\\%"]);
        check("a\\_b", &["a_b"], &["axb"]);
        check("\\\\%", &["\\", "\\x"], &["x"]);
        check("\\a\\漢", &["a漢"], &["\\a漢"]);
        assert_eq!(Pattern::new("a\\"), Err(PatternError::DanglingEscape));
        assert_eq!(Pattern::new("a\\\\\\"), Err(PatternError::DanglingEscape));
    }

    #[test]
    fn states_pass_from_word_to_word() {
        for length in [1, 62, 63, 64, 65, 127, 128, 191, 192, PATTERN_CHARS_MAX] {
            check(
                &"_".repeat(length),
                &[&"é".repeat(length)],
                &[&"é".repeat(length - 1), &"é".repeat(length + 1)],
            );
            let tail = format!("%_{}", "a".repeat(length - 1));
            if length < PATTERN_CHARS_MAX {
                check(&tail, &[&"a".repeat(length), &"a".repeat(length + 300)], &[&"a".repeat(length - 1)]);
            }
        }
    }

    #[test]
    fn length_is_bounded() {
        assert!(Pattern::new(&"漢".repeat(PATTERN_CHARS_MAX)).is_ok());
        let error = Pattern::new(&"%".repeat(PATTERN_CHARS_MAX + 1)).expect_err("one too many");
        assert_eq!(error.to_string(), "the LIKE pattern has 256 characters, at most 255 are allowed");
    }

    #[test]
    fn a_pattern_that_makes_backtracking_explode_is_ordinary() {
        // Trying everything would take more steps than there are atoms.
        let text = "a".repeat(1_000_000);
        check(&format!("{}b", "a%".repeat(100)), &[&format!("{text}b")], &[&text]);
        check(&format!("{}b", "_%a%".repeat(60)), &[&format!("{text}b")], &[&text]);
    }

    #[test]
    fn a_usual_pattern_is_small() {
        assert!(size_of::<Pattern>() <= 24);
    }
}
