//! Positions of clients.

use matcher::geo::{Position, World};
use matcher::live::Fix;
use wire::Fault;

use super::json::{self, Members};
use crate::refusal::Refusal;

/// Reads `[longitude, latitude]`, with an altitude or without; `[x, y]` in a planar world.
pub(crate) fn coordinates(world: World, text: &str, pointer: &str) -> Result<Position, Fault> {
    let numbers: Vec<f64> = json::read(text, pointer, "an array of two or three numbers")?;
    world.position(&numbers).map_err(|error| Fault { pointer: pointer.to_owned(), detail: error.to_string() })
}

/// Reads `{"coordinates", "accuracy_m", "time"}`. Other members may be there: positions come from devices that
/// tell more than anyone asked.
pub(crate) fn parse(world: World, text: &str) -> Result<Fix, Refusal> {
    from_members(world, &mut Members::parse(text)?)
}

/// Reads `{"client", "coordinates", ..}`.
pub(crate) fn parse_named(world: World, text: &str) -> Result<(String, Fix), Refusal> {
    let mut members = Members::parse(text)?;
    let Some(client) = members.take("client") else {
        return Err(Refusal::invalid("/client", "must say which client is there"));
    };
    let client = json::read(client, "/client", "a text")?;
    Ok((client, from_members(world, &mut members)?))
}

/// Reads the members that are left when `client`, `op` and the like are taken.
pub(crate) fn from_members(world: World, members: &mut Members<'_>) -> Result<Fix, Refusal> {
    if members.get("track").is_some() {
        return Err(Refusal::not_yet("/track", "a track"));
    }
    let mut faults = Vec::new();
    let position = match members.take("coordinates") {
        Some(text) => coordinates(world, text, "/coordinates").map_err(|fault| faults.push(fault)).ok(),
        None => {
            faults.push(Fault { pointer: "/coordinates".to_owned(), detail: "must be there".to_owned() });
            None
        }
    };
    let mut accuracy_m = 0.0;
    if let Some(text) = members.take("accuracy_m") {
        match json::read::<f64>(text, "/accuracy_m", "a number of metres") {
            Ok(metres) if metres >= 0.0 => accuracy_m = metres,
            Ok(_) => faults.push(Fault {
                pointer: "/accuracy_m".to_owned(),
                detail: "must be 0 metres or more".to_owned(),
            }),
            Err(fault) => faults.push(fault),
        }
    }
    if let Some(text) = members.take("time") {
        faults.extend(time(text, "/time").err());
    }
    match position {
        Some(position) if faults.is_empty() => Ok(Fix { position, accuracy_m }),
        _ => Err(Refusal::Invalid(faults)),
    }
}

/// Checks a time (RFC 3339).
pub(crate) fn time(text: &str, pointer: &str) -> Result<jiff::Timestamp, Fault> {
    let text: std::borrow::Cow<'_, str> = json::read(text, pointer, "a text")?;
    text.parse().map_err(|_| Fault {
        pointer: pointer.to_owned(),
        detail: "must be a time with its offset (RFC 3339), such as 2026-03-01T07:30:00Z".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_told_with_its_pointer() {
        let text = r#"{"coordinates":[200,0],"accuracy_m":-1,"time":"yesterday","speed":3}"#;
        let Err(Refusal::Invalid(faults)) = parse(World::Geodetic, text) else { panic!("must be refused") };
        let pointers: Vec<_> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(pointers, ["/coordinates", "/accuracy_m", "/time"]);
    }

    #[test]
    fn what_is_no_position_is_refused() {
        for text in [
            r#"{"coordinates":[1e999,0]}"#,
            r#"{"coordinates":[1]}"#,
            r#"{"coordinates":[1,2,3,4]}"#,
            r#"{"coordinates":["1","2"]}"#,
            r#"{"coordinates":null}"#,
            "{}",
        ] {
            assert!(matches!(parse(World::Planar, text), Err(Refusal::Invalid(_))), "{text}");
        }
        assert!(parse(World::Planar, r#"{"coordinates":[500000.5,-3,12]}"#).is_ok());
    }

    #[test]
    fn a_fix_says_how_far_off_it_may_be() {
        let position = World::Planar.position(&[1.0, 2.0]).unwrap();
        for (members, accuracy_m) in [
            ("", 0.0),
            (r#","accuracy_m":null"#, 0.0),
            (r#","accuracy_m":0"#, 0.0),
            (r#","accuracy_m":12.5,"time":"2026-03-01T07:30:00Z""#, 12.5),
        ] {
            let text = format!(r#"{{"client":"a","coordinates":[1,2]{members}}}"#);
            let fix = Fix { position, accuracy_m };
            assert_eq!(parse(World::Planar, &text), Ok(fix), "{members}");
            assert_eq!(parse_named(World::Planar, &text), Ok(("a".to_owned(), fix)), "{members}");
        }
    }
}
