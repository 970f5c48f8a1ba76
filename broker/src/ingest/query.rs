//! The question of `GET /v1/events`.

use std::borrow::Cow;

use matcher::condition::Condition;
use matcher::condition::expression::Expression;
use matcher::geo::{Radius, World};
use matcher::live::{Rectangle, Within};

use super::{Weighed, near};
use crate::config::Limits;
use crate::model::error::{ApiError, quoted};

/// The text of a condition, not read yet.
#[derive(Debug)]
pub(crate) struct Where {
    world: World,
    text: Option<String>,
}

/// Events of a page unless `limit` says otherwise, and at most.
pub(crate) const PAGE: usize = 100;
pub(crate) const PAGE_MAX: usize = 1_000;

const NAMES: [&str; 6] = ["bbox", "near", "where", "client", "limit", "after"];

/// What is asked for.
#[derive(Debug)]
pub(crate) struct LiveQuery {
    pub(crate) within: Within,
    /// A condition, which is read where that holds nobody up.
    pub(crate) condition: Where,
    pub(crate) client: Option<String>,
    pub(crate) limit: usize,
    pub(crate) after: Option<String>,
    /// The question, but for how many events are wanted from where on.
    pub(crate) text: String,
}

impl LiveQuery {
    /// Reads the query of an address.
    ///
    /// # Errors
    /// What is wrong with it, for the first parameter with a fault.
    pub(crate) fn read(world: World, limits: &Limits, query: &str) -> Result<Self, ApiError> {
        let mut parameters = Parameters::read(query)?;
        let (bbox, near) = (parameters.take("bbox"), parameters.take("near"));
        let (told, client) = (parameters.take("where"), parameters.take("client"));
        let text = [&bbox, &near, &told, &client].map(|value| value.as_deref().unwrap_or("\0")).join("\0\0");
        let within = match (bbox, near) {
            (None, None) => Within::Everywhere,
            (Some(bbox), None) => Within::Rectangle(rectangle(world, &bbox)?),
            (None, Some(near)) => circle(world, &near)?,
            (Some(_), Some(_)) => return Err(wrong("bbox and near cannot be asked for together")),
        };
        let limit = limits.condition_bytes;
        if told.as_ref().is_some_and(|told| told.len() > limit) {
            return Err(wrong(format!("where may have at most {limit} bytes (limits.condition_bytes)")));
        }
        let condition = Where { world, text: told.map(Cow::into_owned) };
        let limit = parameters.take("limit").map_or(Ok(PAGE), |told| {
            let limit = told.parse().ok().filter(|limit| (1..=PAGE_MAX).contains(limit));
            limit.ok_or_else(|| wrong(format!("limit must be a number from 1 to {PAGE_MAX}")))
        })?;
        let after = parameters.take("after").map(Cow::into_owned);
        Ok(Self { within, condition, client: client.map(Cow::into_owned), limit, after, text })
    }
}

impl Where {
    /// How many bytes are to be read.
    pub(crate) fn bytes(&self) -> usize {
        self.text.as_ref().map_or(0, String::len)
    }

    /// Reads the condition.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(&self) -> Result<Expression, ApiError> {
        let Some(text) = &self.text else { return Ok(Expression::Constant(true)) };
        Condition::parse_expression(self.world, text).map_err(|error| wrong(format!("where: {error}")))
    }
}

/// It is not normalised, and so no larger than its text.
impl Weighed for Expression {
    fn bytes(&self) -> usize {
        0
    }
}

/// The parameters by their places in [`NAMES`].
struct Parameters<'a>([Option<Cow<'a, str>>; NAMES.len()]);

impl<'a> Parameters<'a> {
    fn read(query: &'a str) -> Result<Self, ApiError> {
        let mut told = [const { None }; NAMES.len()];
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let Some(index) = NAMES.iter().position(|known| *known == name) else {
                return Err(unknown(&name));
            };
            if told[index].replace(value).is_some() {
                return Err(wrong(format!("{name} is given twice")));
            }
        }
        Ok(Self(told))
    }

    fn take(&mut self, name: &str) -> Option<Cow<'a, str>> {
        let index = NAMES.iter().position(|known| *known == name)?;
        self.0[index].take()
    }
}

fn wrong(detail: impl Into<String>) -> ApiError {
    ApiError::BadRequest(detail.into())
}

/// Refuses a parameter that there is not, and names the one that may be meant.
fn unknown(name: &str) -> ApiError {
    let hint = match near::LIVE_QUERY.near(name) {
        Some(known) => format!("did you mean {known}?"),
        None => format!("there are {}", NAMES.join(", ")),
    };
    wrong(format!("there is no parameter {}: {hint}", quoted(name)))
}

/// Reads numbers with commas between, as many as `names` names.
fn numbers<const N: usize>(what: &str, names: &str, text: &str) -> Result<[f64; N], ApiError> {
    let mut numbers = [0.0; N];
    let parts = text.split(',');
    let count = parts.clone().count();
    if count != N {
        return Err(wrong(format!("{what} must be {names}, {N} numbers with commas between: found {count}")));
    }
    for (index, (number, part)) in numbers.iter_mut().zip(parts).enumerate() {
        let read = part.trim().parse().ok().filter(|read: &f64| read.is_finite());
        *number = read.ok_or_else(|| {
            wrong(format!("{what} must be {names}: number {} is {:?}", index + 1, quoted(part)))
        })?;
    }
    Ok(numbers)
}

/// Says what is wrong, and that it would not be so with the coordinates in their order.
fn swapped(what: &str, error: impl std::fmt::Display, would_do: bool) -> ApiError {
    let hint = if would_do { "; the order is longitude, latitude: are they swapped?" } else { "" };
    wrong(format!("{what}: {error}{hint}"))
}

fn rectangle(world: World, text: &str) -> Result<Rectangle, ApiError> {
    let names = match world {
        World::Geodetic => "west,south,east,north",
        World::Planar => "the least x, the least y, the largest x, the largest y",
    };
    let [west, south, east, north] = numbers("bbox", names, text)?;
    Rectangle::new(world, [west, south, east, north]).map_err(|error| {
        let would_do = Rectangle::new(world, [south, west, north, east]).is_ok();
        swapped("bbox", error, world == World::Geodetic && would_do)
    })
}

fn circle(world: World, text: &str) -> Result<Within, ApiError> {
    let names = match world {
        World::Geodetic => "longitude,latitude,metres",
        World::Planar => "x,y,metres",
    };
    let [x, y, metres] = numbers("near", names, text)?;
    let centre = world.position(&[x, y]).map_err(|error| {
        let would_do = world.position(&[y, x]).is_ok();
        swapped("near", error, world == World::Geodetic && would_do)
    })?;
    let radius = Radius::new(world, metres).map_err(|error| wrong(format!("near: {error}")))?;
    Ok(Within::Circle { centre, radius })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(world: World, query: &str) -> Result<LiveQuery, ApiError> {
        LiveQuery::read(world, &crate::config::Config::default().limits, query)
    }

    #[test]
    fn a_question_has_a_place_a_condition_a_client_and_a_page() {
        let all = read(World::Geodetic, "").unwrap();
        assert!(matches!(all.within, Within::Everywhere) && all.client.is_none() && all.limit == PAGE);
        let told = "bbox=170,-10,-170,10&where=severity%20%3E%3D%202&client=a+b&limit=1000&after=00";
        let asked = read(World::Geodetic, told).unwrap();
        assert!(matches!(asked.within, Within::Rectangle(_)));
        assert_eq!(
            (asked.client.as_deref(), asked.limit, asked.after.as_deref()),
            (Some("a b"), 1_000, Some("00"))
        );
        assert_eq!(
            asked.condition.read(),
            Ok(Condition::parse_expression(World::Geodetic, "severity >= 2").unwrap())
        );
        assert_eq!(all.condition.read(), Ok(Expression::Constant(true)));
        assert!(read(World::Planar, "bbox=-5e8,0,1e9,1").is_ok());
        assert!(matches!(
            read(World::Geodetic, "near=9.19,45.46,500").unwrap().within,
            Within::Circle { .. }
        ));
    }

    #[test]
    fn the_text_tells_questions_apart_but_not_their_pages() {
        let text = |query| read(World::Geodetic, query).unwrap().text;
        assert_eq!(text("near=1,2,3&limit=5"), text("limit=7&after=00&near=1,2,3"));
        let texts =
            ["", "client=a", "near=1,2,3", "bbox=1,2,3,4", "where=a%3D1", "where=a%3D1&client=a"].map(text);
        assert!((1..texts.len()).all(|index| !texts[..index].contains(&texts[index])), "{texts:?}");
    }

    #[test]
    fn faults_are_told_with_what_would_do() {
        for (query, told) in [
            ("box=1,2,3,4", "there is no parameter box: did you mean bbox?"),
            ("Near=1,2,3", "did you mean near?"),
            ("cursor=1", "there is no parameter cursor: did you mean after?"),
            ("order=1", "there are bbox, near, where, client, limit, after"),
            ("filter=1", "there is no parameter filter"),
            ("limit=0", "limit must be a number from 1 to 1000"),
            ("limit=1001", "from 1 to 1000"),
            ("limit=5&limit=5", "limit is given twice"),
            ("bbox=1,2,3,4&near=1,2,3", "bbox and near cannot be asked for together"),
            ("bbox=1,2,3", "west,south,east,north, 4 numbers with commas between: found 3"),
            ("bbox=1,2,x,4", "number 3 is \"x\""),
            ("bbox=1,2,NaN,4", "number 3 is \"NaN\""),
            ("bbox=1,2,3,1e999", "number 4 is \"1e999\""),
            ("bbox=,,,", "number 1 is \"\""),
            ("bbox=0,5,1,4", "south 5 is north of north 4"),
            ("bbox=45,109,46,110", "are they swapped?"),
            ("bbox=0,0,181,1", "(numbers 3 and 4 of west,south,east,north)"),
            ("near=45,109,500", "longitude, latitude: are they swapped?"),
            ("near=181,45,500", "longitude 181 is outside of -180 to 180"),
            ("near=9,45,-1", "near: "),
            ("near=9,45", "longitude,latitude,metres, 3 numbers"),
            ("where=a%20%3D", "where: "),
        ] {
            let refused = read(World::Geodetic, query).and_then(|asked| asked.condition.read()).unwrap_err();
            let ApiError::BadRequest(detail) = &refused else { panic!("{query}: {refused:?}") };
            assert!(detail.contains(told), "{query}: {detail}");
        }
        assert!(read(World::Geodetic, &format!("where={}", "x".repeat(1 << 20))).is_err());
        let refused = read(World::Planar, "bbox=2,0,1,1").unwrap_err();
        assert_eq!(refused, ApiError::BadRequest("bbox: the least x 2 is beyond the largest x 1".to_owned()));
    }
}
