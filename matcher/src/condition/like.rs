//! `LIKE` patterns: `%` is any text, `_` any one character, `\` takes the next one literally.
//!
//! A pattern of plain pieces between `%` is matched piece by piece, the leftmost place first, by substring
//! search. One with `_` is an automaton whose states are the bits of a few words, which looks at texts only that have its
//! plain pieces in their order. Neither goes back in the text.

use memchr::memmem;

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
    compiled: Option<Box<Compiled>>,
}

#[derive(Clone, Debug)]
enum Compiled {
    /// Pieces before, between and behind each `%`, without escapes.
    Pieces(Box<[Box<str>]>),
    /// A pattern with `_`.
    Steps {
        automaton: Automaton,
        /// Pieces between wildcards. A text that fits has these one after the other.
        pieces: Box<[Box<str>]>,
    },
}

/// Cost of a pattern that is searched for anywhere in a text, in plain constraints: at 16 KB of text up to 16 us.
const SEARCH_COST: usize = 64;
/// Cost of an automaton that goes through the whole text, in plain constraints: at 16 KB 93 us.
const AUTOMATON_COST: usize = 256;
/// Nanoseconds that a byte of a text takes: in a search, and in an automaton.
const SEARCH_BYTE_NS: u64 = 1;
const AUTOMATON_BYTE_NS: u64 = 6;
/// Texts up to here are tested quickly, whatever the pattern.
const SHORT_BYTES: u64 = 32;

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
        let compiled = source.contains(['_', '\\']).then(|| Compiled::new(source)).transpose()?;
        Ok(Self { source: source.into(), compiled: compiled.map(Box::new) })
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
        match self.compiled.as_deref() {
            None => matches_pieces(self.source.split('%'), text),
            Some(Compiled::Pieces(pieces)) => matches_pieces(pieces.iter().map(|piece| &**piece), text),
            Some(Compiled::Steps { automaton, pieces }) => {
                has_in_order(pieces.iter().map(|piece| &**piece), text).is_some() && automaton.matches(text)
            }
        }
    }

    /// About how many nanoseconds a test of a text of `bytes` takes at most.
    pub(crate) fn ns(&self, bytes: u64) -> u64 {
        if bytes <= SHORT_BYTES {
            return bytes;
        }
        match self.cost() {
            AUTOMATON_COST => bytes * AUTOMATON_BYTE_NS,
            SEARCH_COST => bytes * SEARCH_BYTE_NS,
            _ => 0,
        }
    }

    /// Cost of a test at worst, in tests of plain constraints, for the longest texts.
    pub(crate) fn cost(&self) -> usize {
        match self.compiled.as_deref() {
            Some(Compiled::Steps { automaton, .. }) if automaton.goes_through() => AUTOMATON_COST,
            Some(Compiled::Steps { .. }) => 1,
            Some(Compiled::Pieces(pieces)) => search_cost(pieces.iter().map(|piece| &**piece)),
            None => search_cost(self.source.split('%')),
        }
    }
}

impl Compiled {
    fn new(source: &str) -> Result<Self, PatternError> {
        let (mut pieces, mut piece, mut has_any) = (Vec::new(), String::new(), false);
        let mut characters = source.chars();
        while let Some(character) = characters.next() {
            match character {
                '%' => pieces.push(std::mem::take(&mut piece).into()),
                '_' => {
                    has_any = true;
                    pieces.push(std::mem::take(&mut piece).into());
                }
                '\\' => piece.push(characters.next().ok_or(PatternError::DanglingEscape)?),
                letter => piece.push(letter),
            }
        }
        pieces.push(piece.into());
        Ok(if has_any {
            let automaton = Automaton::new(source)?;
            if !automaton.goes_through() {
                // It comes to an end within the length of the pattern, before a search of the whole text would.
                pieces.clear();
            }
            Self::Steps { automaton, pieces: pieces.into() }
        } else {
            Self::Pieces(pieces.into())
        })
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Pattern {}

/// A pattern without `_`, by its pieces between `%`. Each inner piece takes its leftmost place: what fits with a later
/// place fits with this one too.
fn matches_pieces<'a>(mut pieces: impl DoubleEndedIterator<Item = &'a str>, text: &str) -> bool {
    let first = pieces.next().unwrap_or("");
    let Some(last) = pieces.next_back() else {
        return first == text;
    };
    let Some(rest) = text.strip_prefix(first) else {
        return false;
    };
    has_in_order(pieces, rest).is_some_and(|rest| rest.ends_with(last))
}

/// Rest of a text behind pieces that stand in it one after the other, each as far to the left as can be. `None` where
/// they do not stand in it so.
fn has_in_order<'a, 'b>(mut pieces: impl Iterator<Item = &'a str>, text: &'b str) -> Option<&'b str> {
    pieces.try_fold(text, |rest, piece| {
        let place = memmem::find(rest.as_bytes(), piece.as_bytes())?;
        Some(&rest[place + piece.len()..])
    })
}

/// A piece between two `%` is looked for in all of the text; other pieces stand at its ends.
fn search_cost<'a>(mut pieces: impl DoubleEndedIterator<Item = &'a str>) -> usize {
    let _ = (pieces.next(), pieces.next_back());
    if pieces.any(|piece| !piece.is_empty()) { SEARCH_COST } else { 1 }
}

/// The states of the automaton that a text can be in: bit n says that the first n characters of the pattern
/// are matched.
type States = [u64; STATE_WORDS];

/// Automaton of a pattern: which characters each step accepts, as bits. Bit n is about the step from state n to n + 1.
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
            if has(&self.stay, self.steps_count) && has(&states, self.steps_count) {
                return true;
            }
        }
        has(&states, self.steps_count)
    }

    /// Whether a `%` stands before the end, so that nothing but the end of a text decides.
    fn goes_through(&self) -> bool {
        (0..self.steps_count).any(|step| has(&self.stay, step))
    }
}

fn has(states: &States, bit: usize) -> bool {
    states[bit / 64] & (1 << (bit % 64)) != 0
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
    fn what_is_looked_for_in_the_whole_text_costs_more() {
        let cost = |source: &str| Pattern::new(source).unwrap().cost();
        for plain in ["", "abc", "%", "%%", "abc%", "%abc", "a%c", "a_c", "a_%", "100\\%", "\\_%c"] {
            assert_eq!(cost(plain), 1, "{plain}");
        }
        for searched in ["%a%", "a%b%", "%%a%", "a%b%c", "%\\_%"] {
            assert_eq!(cost(searched), SEARCH_COST, "{searched}");
        }
        for automaton in ["%a_b", "%_", "a%_%"] {
            assert_eq!(cost(automaton), AUTOMATON_COST, "{automaton}");
        }
    }

    #[test]
    fn a_usual_pattern_is_small() {
        assert!(size_of::<Pattern>() <= 24);
    }
}
