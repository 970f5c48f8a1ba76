//! Texts for people.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use nearcast_client::{Coordinates, Event, Feature, Gap, Message, Transition};
use serde::Serialize;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;

/// A line beside what is asked for. Who closes standard error does not want to know.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Standard output. Nothing is lost in it: what was written has been handed to who reads.
pub(crate) struct Out(tokio::io::Stdout);

impl Out {
    pub(crate) fn new() -> Self {
        Self(tokio::io::stdout())
    }

    /// Writes text, and waits until it is taken.
    pub(crate) async fn write(&mut self, text: &str) -> io::Result<()> {
        self.0.write_all(text.as_bytes()).await?;
        self.0.flush().await
    }
}

/// Colours, where somebody sees them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette(bool);

pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const ALARM: Style = AnsiColor::Red.on_default().bold();

impl Palette {
    /// For standard output: on a terminal, unless `NO_COLOR` asks for none.
    pub(crate) fn of_stdout() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self(!unwanted && io::stdout().is_terminal())
    }

    #[cfg(test)]
    pub(crate) const fn plain() -> Self {
        Self(false)
    }

    /// The text in a style.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        if self.0 { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// A text of somebody else's as a terminal may have it: what would steer it is shown, not done.
pub(crate) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_control() => shown.extend(c.escape_default()),
            c if turns(c) => _ = write!(shown, "{}", c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// Directions of writing are turned by these.
const fn turns(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A document on a line, in which what would steer a terminal is escaped as JSON does it. Without a line end.
pub(crate) fn json_text(document: &impl Serialize) -> serde_json::Result<String> {
    let line = serde_json::to_string(document)?;
    if !line.chars().any(|c| c.is_control() || turns(c)) {
        return Ok(line);
    }
    let mut shown = String::with_capacity(line.len() + 16);
    for c in line.chars() {
        // In texts alone: JSON itself is of other characters.
        if c.is_control() || turns(c) {
            _ = write!(shown, "\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    Ok(shown)
}

/// A distance: metres below a kilometre.
pub(crate) fn distance(metres: f64) -> String {
    match metres {
        m if m < 1.0 => format!("{m:.1} m"),
        m if m < 999.5 => format!("{m:.0} m"),
        m if m < 99_950.0 => format!("{:.1} km", m / 1000.0),
        m => format!("{:.0} km", m / 1000.0),
    }
}

/// A number with commas.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A message as a line of JSON: the frame that came, with its session.
pub(crate) fn json_line(message: &Message) -> String {
    let frame = match message {
        Message::Event(event) => Frame::Event {
            epoch: &event.epoch,
            offset: event.offset,
            ahead: event.ahead,
            subscriptions: &event.subscriptions,
            cause: event.cause.as_str(),
            transition: event.transition.as_ref().map(Transition::as_str),
            traceparent: event.trace.as_ref().map(|trace| trace.parent.as_str()),
            tracestate: event.trace.as_ref().and_then(|trace| trace.state.as_deref()),
            event: &event.feature,
        },
        Message::Gap(Gap { epoch, from, to, count, reason, .. }) => {
            Frame::Gap { epoch, from: *from, to: *to, count: *count, reason: reason.as_str() }
        }
        // Records that cannot be read are reported beside the output.
        Message::Unreadable(_) | _ => return String::new(),
    };
    json_text(&frame).map(|line| line + "\n").unwrap_or_default()
}

#[derive(Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Frame<'a> {
    Event {
        epoch: &'a str,
        offset: u64,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        ahead: bool,
        subscriptions: &'a [String],
        cause: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        transition: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        traceparent: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tracestate: Option<&'a str>,
        event: &'a Feature,
    },
    Gap {
        epoch: &'a str,
        from: u64,
        to: u64,
        count: u64,
        reason: &'a str,
    },
}

/// How an event becomes a line.
pub(crate) struct Lines<'a> {
    pub(crate) palette: Palette,
    /// The subscription that needs no mention.
    pub(crate) subscription: Option<&'a str>,
    pub(crate) planar: bool,
}

impl Lines<'_> {
    /// Time, what it is, how far, who, where, and the attributes.
    pub(crate) fn event(&self, event: &Event, from: Option<Coordinates>) -> String {
        let mut words = Vec::new();
        if let Some(transition) = &event.transition {
            let style = if transition.as_str() == "exit" { BAD } else { GOOD };
            words.push(self.palette.paint(style, &plain(transition.as_str())));
        }
        if event.cause.as_str() != "published" {
            words.push(self.palette.paint(DIM, &plain(event.cause.as_str())));
        }
        let mut line = self.line(&event.feature, &words, from);
        if event.subscriptions.iter().any(|id| Some(id.as_str()) != self.subscription) {
            let names = event.subscriptions.iter().map(|id| plain(id)).collect::<Vec<_>>().join(", ");
            line.push(' ');
            line.push_str(&self.palette.paint(DIM, &format!("[{names}]")));
        }
        line + "\n"
    }

    /// Like [`event`](Self::event), for an event that was not delivered.
    pub(crate) fn feature(&self, feature: &Feature, from: Option<Coordinates>) -> String {
        self.line(feature, &[], from) + "\n"
    }

    fn line(&self, feature: &Feature, told: &[String], from: Option<Coordinates>) -> String {
        let mut line = self.palette.paint(DIM, &time_of_day(feature.time.as_deref().unwrap_or_default()));
        if feature.priority.as_deref() == Some("alarm") {
            line.push(' ');
            line.push_str(&self.palette.paint(ALARM, "ALARM"));
        }
        for word in told {
            line.push(' ');
            line.push_str(word);
        }
        let mut word = |style, text: &str| {
            line.push(' ');
            line.push_str(&self.palette.paint(style, text));
        };
        let to = feature.coordinates;
        if let Some(from) = from {
            let metres =
                if self.planar { (to.lon - from.lon).hypot(to.lat - from.lat) } else { from.distance_m(to) };
            word(BOLD, &distance(metres));
        }
        let id = feature.id.as_ref().map(ToString::to_string);
        let name = feature.key.as_ref().or(id.as_ref()).cloned().unwrap_or_default();
        word(BOLD, &cut(&plain(&name), 60));
        word(DIM, &format!("{},{}", degrees(to.lon), degrees(to.lat)));
        if let Value::Object(properties) = &feature.properties {
            let properties: Vec<_> =
                properties.iter().map(|(name, value)| format!("{}={}", plain(name), short(value))).collect();
            word(Style::new(), &cut(&properties.join(" "), 300));
        }
        line
    }
}

/// A gap in words.
pub(crate) fn gap(gap: &Gap) -> Option<String> {
    match (gap.reason.as_str(), gap.count) {
        // The alarm that stands here has been shown.
        ("ahead", _) => None,
        ("epoch", 0) => Some("another session than before; nothing is known to be missing".to_owned()),
        (reason, 1) => Some(format!("a delivery is missing ({reason}), {}", gap.from)),
        (reason, count) => {
            Some(format!("{count} deliveries are missing ({reason}), {} to {}", gap.from, gap.to))
        }
    }
}

/// The time of a day of today's, else with its date.
pub(crate) fn time_of_day(rfc_3339: &str) -> String {
    let Ok(time) = rfc_3339.parse::<Timestamp>() else { return plain(rfc_3339) };
    let of_day = time.strftime("%H:%M:%SZ").to_string();
    if time.strftime("%F").to_string() == Timestamp::now().strftime("%F").to_string() {
        return of_day;
    }
    time.strftime("%F %H:%M:%SZ").to_string()
}

/// A number of degrees or metres as somebody types it: no more than a decimetre says.
pub(crate) fn degrees(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// An attribute's value: a text without quotes where it reads as one.
fn short(value: &Value) -> String {
    let bare = value.as_str().filter(|text| !text.is_empty() && !text.contains([' ', '"', '=']));
    let text = bare.map_or_else(|| value.to_string(), str::to_owned);
    cut(&plain(&text), 60)
}

/// Cuts a text to at most `characters` characters, with an ellipsis where some are left out.
pub(crate) fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_terminals_is_shown() {
        assert_eq!(plain("a\u{1b}[31mb\n\u{9b}c\u{202e}d é"), "a\\u{1b}[31mb\\n\\u{9b}c\\u{202e}d é");
        assert_eq!(short(&Value::from("a\u{7}")), "a\\u{7}");
        let line = json_text(&Value::from("a\u{1b}\u{9b}\u{7f}\u{202e}é\"")).unwrap();
        assert_eq!(line, r#""a\u001b\u009b\u007f\u202eé\"""#);
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), "a\u{1b}\u{9b}\u{7f}\u{202e}é\"");
        assert_eq!(short(&Value::from("two words")), "\"two words\"");
        assert_eq!(short(&Value::from("x".repeat(100))).chars().count(), 61);
    }

    #[test]
    fn numbers_are_as_long_as_they_say_something() {
        let shown = [0.04, 7.4, 999.4, 999.6, 1250.0, 99_960.0, 20_015_114.4].map(distance);
        assert_eq!(shown, ["0.0 m", "7 m", "999 m", "1.0 km", "1.2 km", "100 km", "20015 km"]);
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([9.19, 45.0, -0.123_456_78].map(degrees), ["9.19", "45", "-0.123457"]);
    }
}
