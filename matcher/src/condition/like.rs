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
