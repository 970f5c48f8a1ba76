//! `nearcast explain`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use nearcast_client::documents::{
    AreaForm, ExplainedArea, ExplainedPosition, ExplainedReach, Explanation, OnViolation, Truth,
};
use nearcast_client::session::Subject;
use nearcast_client::{Coordinates, Feature, Subscription};

use crate::access::Access;
use crate::event::EventFlags;
use crate::input::Source;
use crate::interest::Interest;
use crate::print::{BAD, BOLD, DIM, GOOD, Out, Palette, degrees, json_text, plain};
use crate::{usage, values};

/// Arguments of `nearcast explain`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  nearcast explain --client ann --event a-17        (all of her subscriptions, and an event that is live)
  nearcast explain --client ann --subscription alarms --at 9.19,45.464 --set severity=2
  nearcast explain --client ann --around 500 --where \"severity >= 3\" --position 9.2,45.46 event.geojson

Nothing is changed or delivered. Subscription and event may be there, or be asked about as if they were.")]
pub struct ExplainArguments {
    /// The event, a Feature; - is standard input
    #[arg(value_name = "FILE", conflicts_with_all = ["at", "event"])]
    file: Option<PathBuf>,
    /// The id of a live event
    #[arg(long, value_name = "ID", conflicts_with = "at")]
    event: Option<String>,
    /// The client that gets the event, or does not; else the subject of the token
    #[arg(long, value_name = "NAME", env = "NEARCAST_CLIENT")]
    client: Option<String>,
    /// One of the client's subscriptions; else all, or the one that flags say
    #[arg(long, value_name = "ID")]
    subscription: Option<String>,
    /// A place in place of the client's
    #[arg(long, value_name = "LON,LAT", value_parser = values::place, allow_hyphen_values = true)]
    position: Option<Coordinates>,
    /// Show the broker's answers, a line each
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    flags: EventFlags,
    #[command(flatten)]
    interest: Interest,
    #[command(flatten)]
    access: Access,
}

pub(crate) async fn run(arguments: ExplainArguments) -> anyhow::Result<ExitCode> {
    let ExplainArguments { file, event, client, subscription, position, json, flags, interest, access } =
        arguments;
    let client = access.client(client)?;
    let client = client.ok_or_else(|| usage("who gets it, or does not? --client"))?;
    if file.as_ref().is_some_and(|file| file.as_os_str() == "-") && interest.reads_stdin() {
        return Err(usage("standard input can be read for one thing only"));
    }
    let event: Subject<Feature> = match (event, flags.feature(), file) {
        (Some(id), _, _) => Subject::Id(id),
        (None, Some(feature), _) => Subject::Document(feature),
        (None, None, Some(file)) => {
            let source = Source::open(&file)?;
            let name = source.name.clone();
            Subject::Document(serde_json::from_str(&source.read().await?).with_context(|| name)?)
        }
        (None, None, None) => return Err(usage("which event? --event, a file, or a place by --at")),
    };
    let broker = access.broker()?;
    let asked: Vec<Subject<Subscription>> = match (subscription, interest.subscription().await?) {
        (Some(_), Some(_)) => {
            return Err(usage("--subscription is one that is there, and the flags say another"));
        }
        (Some(id), None) => vec![Subject::Id(id)],
        (None, Some((_, document))) => vec![Subject::Document(document)],
        (None, None) => {
            let there = broker.subscriptions(&client).await.map_err(|error| access.told(&error))?;
            there.into_iter().filter_map(|subscription| subscription.id).map(Subject::Id).collect()
        }
    };
    if asked.is_empty() {
        anyhow::bail!("{} has no subscriptions", plain(&client));
    }
    let palette = Palette::of_stdout();
    let mut out = Out::new();
    for subscription in asked {
        let explained = broker.explain(&client, subscription, event.clone(), position).await;
        let explained = explained.map_err(|error| access.told(&error))?;
        let text = if json { format!("{}\n", json_text(&explained)?) } else { tree(&explained, palette) };
        out.write(&text).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// An explanation as text: what held and what did not, a line each.
fn tree(explained: &Explanation, palette: Palette) -> String {
    let Explanation {
        matched,
        client,
        subscription,
        position,
        position_withheld,
        event,
        reach,
        filters,
        inside,
        checks,
        derived,
        why,
    } = explained;
    let mut text = String::new();
    let verdict = if *matched { palette.paint(GOOD, "yes") } else { palette.paint(BAD, "no") };
    let asked = subscription.as_ref().map(|id| format!(", {}", plain(id))).unwrap_or_default();
    let mut line = |depth: usize, line: String| {
        text.push_str(&" ".repeat(2 * depth));
        text.push_str(&line);
        text.push('\n');
    };
    line(
        0,
        format!("{}: {verdict}, {}", palette.paint(BOLD, &format!("{}{asked}", plain(client))), plain(why)),
    );
    line(1, palette.paint(DIM, &format!("client: {}", of_client(position.as_ref(), *position_withheld))));
    let id = event.id.as_ref().map(|id| id.as_str().map_or_else(|| id.to_string(), plain));
    let life = match (event.live, event.expires_in_s) {
        (false, _) => ", not live".to_owned(),
        (true, None) => ", live".to_owned(),
        (true, Some(rest_s)) => format!(", live for {rest_s:.0} s more"),
    };
    let inside = if *inside { ", inside now" } else { "" };
    line(1, palette.paint(DIM, &format!("event: {}{life}{inside}", id.as_deref().unwrap_or("a new one"))));
    if let Some(derived) = derived {
        let rule = derived.rule.as_ref().map(|rule| format!(", {}", plain(rule))).unwrap_or_default();
        let from: Vec<_> = derived.from.iter().map(|id| plain(id)).collect();
        line(1, format!("derived by {}{rule} from {}", plain(&derived.by), from.join(", ")));
    }
    for check in checks {
        let (name, links) = (plain(&check.check), check.links.iter().map(of_link));
        let does = if check.on_violation == OnViolation::Drop { "holds it back" } else { "marks it" };
        line(1, format!("{} check {name} {does}", mark(false, palette)));
        links.for_each(|link| line(2, link));
    }
    if let Some(reach) = reach {
        line(1, format!("{} reach: {}", mark(reach.holds, palette), of_reach(reach)));
    }
    for (index, filter) in (1..).zip(filters) {
        line(1, format!("{} filter {index}", mark(filter.matched, palette)));
        let area = &filter.area;
        line(2, format!("{} area: {}", mark(area.holds, palette), of_area(area)));
        if let Some(nearest) = area.nearest {
            let rank = nearest.rank.map_or_else(
                || "has no place among the".to_owned(),
                |rank| format!("is number {rank} of the"),
            );
            line(
                3,
                format!(
                    "{} the event {rank} nearest, of which {} count",
                    mark(nearest.holds, palette),
                    nearest.k
                ),
            );
        }
        let condition = &filter.condition;
        if condition.constraints.is_empty() {
            line(2, format!("{} condition: none", truth(condition.truth, palette)));
            continue;
        }
        line(2, format!("{} condition", truth(condition.truth, palette)));
        for constraint in &condition.constraints {
            let reason = palette.paint(DIM, &format!("({})", plain(&constraint.reason)));
            line(
                3,
                format!("{} {} {reason}", truth(constraint.truth, palette), plain(&constraint.constraint)),
            );
        }
    }
    text
}

/// Variables of a check with the ids of events that do not fit.
fn of_link(link: &BTreeMap<String, String>) -> String {
    let bindings: Vec<_> = link.iter().map(|(variable, id)| format!("{variable} = {}", plain(id))).collect();
    bindings.join(", ")
}

fn of_client(position: Option<&ExplainedPosition>, withheld: bool) -> String {
    let Some(ExplainedPosition { coordinates, accuracy_m, age_s }) = position else {
        return if withheld { "its position is not shown" } else { "it has told no position" }.to_owned();
    };
    let place = coordinates.iter().map(|number| degrees(*number)).collect::<Vec<_>>().join(",");
    let accuracy = accuracy_m.map(|metres| format!(", give or take {metres:.0} m")).unwrap_or_default();
    let age = age_s.map(|age_s| format!(", told {age_s:.1} s ago")).unwrap_or_default();
    format!("at {place}{accuracy}{age}")
}

fn of_reach(reach: &ExplainedReach) -> String {
    let mut text = format!("{} of the event", metres(reach.reach_m));
    match reach.distance_m {
        None => text.push_str("; the client has told no position and is not held to it"),
        Some(distance_m) => {
            _ = write!(text, "; the client is {} away{}", away(distance_m), outside(reach.metres_outside))
        }
    }
    text
}

fn of_area(area: &ExplainedArea) -> String {
    let radius = area.radius_m.map(metres).unwrap_or_default();
    let mut text = match area.form {
        AreaForm::Everywhere => "everywhere".to_owned(),
        AreaForm::Following => format!("within {radius} of the client"),
        AreaForm::Circle => format!("within {radius} of its centre"),
        AreaForm::Corridor => format!("within {radius} of its line"),
        AreaForm::Route => format!("within {radius} of the way along the route"),
        AreaForm::Polygon => "the polygon".to_owned(),
    };
    match area.distance_m {
        Some(0.0) if area.form == AreaForm::Polygon => text.push_str("; the event is inside"),
        Some(distance_m) => {
            _ = write!(text, "; the event is {} away{}", away(distance_m), outside(area.metres_outside))
        }
        None if area.form == AreaForm::Following => text.push_str("; there is no position to measure from"),
        None => {}
    }
    if let Some(distance_m) = area.swapped_distance_m {
        _ = write!(text, "; {} away with longitude and latitude swapped", away(distance_m));
    }
    if area.waits_for_a_better_fix {
        text.push_str("; the client's position is too inaccurate, so that nothing enters or exits");
    }
    text
}

fn outside(metres_outside: Option<f64>) -> String {
    metres_outside
        .filter(|outside_m| *outside_m > 0.0)
        .map(|outside_m| format!(", {} too far", away(outside_m)))
        .unwrap_or_default()
}

/// Metres as exactly as they may matter.
fn metres(metres: f64) -> String {
    format!("{} m", degrees((metres * 1000.0).round() / 1000.0))
}

/// A distance as exactly as it may matter: nobody measures a far place to the millimetre.
fn away(distance_m: f64) -> String {
    match distance_m {
        ..1_000.0 => format!("{} m", degrees((distance_m * 100.0).round() / 100.0)),
        1_000.0..10_000.0 => format!("{distance_m:.0} m"),
        10_000.0..100_000.0 => format!("{} km", degrees((distance_m / 100.0).round() / 10.0)),
        _ => format!("{:.0} km", distance_m / 1_000.0),
    }
}

fn mark(holds: bool, palette: Palette) -> String {
    truth(if holds { Truth::True } else { Truth::False }, palette)
}

fn truth(truth: Truth, palette: Palette) -> String {
    match truth {
        Truth::True => palette.paint(GOOD, "✓"),
        Truth::False => palette.paint(BAD, "✗"),
        Truth::Unknown => palette.paint(BAD, "?"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn distances_are_as_exact_as_they_may_matter() {
        for (distance_m, text) in [
            (0.0, "0 m"),
            (0.004, "0 m"),
            (30.2496, "30.25 m"),
            (999.9, "999.9 m"),
            (1_234.567, "1235 m"),
            (12_345.6, "12.3 km"),
            (50_000.0, "50 km"),
            (5_312_125.566, "5312 km"),
        ] {
            assert_eq!(away(distance_m), text);
        }
    }

    #[test]
    fn an_explanation_is_a_tree() {
        let explained: Explanation = serde_json::from_value(json!({
            "matched": false, "client": "car-7", "subscription": "s1",
            "position": {"coordinates": [9.19, 45.464], "accuracy_m": 12.0, "age_s": 2.53},
            "event": {"id": "a-17", "live": true, "expires_in_s": 1795.2},
            "reach": {"holds": true, "reach_m": 500.0, "distance_m": 130.25, "metres_outside": 0.0},
            "filters": [
                {"matched": false,
                 "area": {"form": "following", "holds": false, "distance_m": 130.2496, "radius_m": 100.0, "metres_outside": 30.2496,
                          "nearest": {"k": 3, "rank": 4, "holds": false}},
                 "condition": {"truth": "false", "constraints": [
                    {"constraint": "severity >= 3", "attribute": "severity", "value": 2, "truth": "false", "reason": "severity is 2, which is not >= 3"},
                    {"constraint": "lanes = 1", "attribute": "lanes", "value": null, "truth": "unknown", "reason": "there is no lanes"}]}},
                {"matched": false,
                 "area": {"form": "polygon", "holds": true, "distance_m": 0.0, "radius_m": null, "metres_outside": 0.0},
                 "condition": {"truth": "true", "constraints": []}}],
            "inside": false, "why": "it is \u{1b}[31mtoo far"
        })).unwrap();
        assert_eq!(
            tree(&explained, Palette::plain()),
            "car-7, s1: no, it is \\u{1b}[31mtoo far\n\
             \u{20} client: at 9.19,45.464, give or take 12 m, told 2.5 s ago\n\
             \u{20} event: a-17, live for 1795 s more\n\
             \u{20} ✓ reach: 500 m of the event; the client is 130.25 m away\n\
             \u{20} ✗ filter 1\n\
             \u{20}   ✗ area: within 100 m of the client; the event is 130.25 m away, 30.25 m too far\n\
             \u{20}     ✗ the event is number 4 of the nearest, of which 3 count\n\
             \u{20}   ✗ condition\n\
             \u{20}     ✗ severity >= 3 (severity is 2, which is not >= 3)\n\
             \u{20}     ? lanes = 1 (there is no lanes)\n\
             \u{20} ✗ filter 2\n\
             \u{20}   ✓ area: the polygon; the event is inside\n\
             \u{20}   ✓ condition: none\n"
        );
    }
}
