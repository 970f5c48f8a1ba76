//! Questions for live events.

use std::collections::VecDeque;

use futures_util::{Stream, stream};
use serde::Deserialize;

use crate::{Broker, Condition, Coordinates, Error, Feature, http::encoded};

/// Which live events are asked for: all, unless it says more. See [`Broker::events`].
///
/// ```
/// use nearcast_client::{Query, attr};
/// let near = Query::near([9.19, 45.464], 500.0).when(attr("severity").ge(2));
/// let there = Query::bbox(9.0, 45.0, 9.5, 45.6).client("ann");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Query {
    place: Option<String>,
    condition: Option<String>,
    client: Option<String>,
    page: Option<u32>,
}

/// A page as it comes.
#[derive(Deserialize)]
struct Page {
    features: VecDeque<Feature>,
    next: Option<String>,
}

impl Query {
    /// All live events.
    pub fn all() -> Self {
        Self::default()
    }

    /// Events in a rectangle, in degrees or in metres. One whose `west` is beyond its `east` crosses the antimeridian.
    pub fn bbox(west: f64, south: f64, east: f64, north: f64) -> Self {
        Self { place: Some(format!("bbox={west},{south},{east},{north}")), ..Self::default() }
    }

    /// Events within a distance of a place, in metres, the nearest first.
    pub fn near(centre: impl Into<Coordinates>, radius_m: f64) -> Self {
        let Coordinates { lon, lat, .. } = centre.into();
        Self { place: Some(format!("near={lon},{lat},{radius_m}")), ..Self::default() }
    }

    /// Only where a condition is true: one that was built, or CQL2 text.
    pub fn when(mut self, condition: impl Into<ConditionText>) -> Self {
        self.condition = Some(condition.into().0);
        self
    }

    /// Only what matches one of a client's subscriptions where it is now.
    pub fn client(mut self, client: impl Into<String>) -> Self {
        self.client = Some(client.into());
        self
    }

    /// How many events one request asks for (1 to 1,000; 1,000 unless said).
    pub fn page(mut self, events: u32) -> Self {
        self.page = Some(events);
        self
    }

    fn path(&self, after: Option<&str>) -> String {
        let mut path = format!("/v1/events?limit={}", self.page.unwrap_or(1_000));
        if let Some(place) = &self.place {
            path.push('&');
            path.push_str(place);
        }
        let named =
            [("where", self.condition.as_deref()), ("client", self.client.as_deref()), ("after", after)];
        for (name, value) in named {
            if let Some(value) = value {
                path.push_str(&format!("&{name}={}", encoded(value)));
            }
        }
        path
    }
}

/// A condition as CQL2 text.
#[derive(Clone, Debug)]
pub struct ConditionText(String);

impl From<Condition> for ConditionText {
    fn from(condition: Condition) -> Self {
        Self(condition.to_string())
    }
}

impl From<&str> for ConditionText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for ConditionText {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// Progress through the pages.
enum Next {
    Page(Option<String>),
    End,
}

impl Broker {
    /// Live events, page by page as they are taken. With [`Query::near`] the nearest come first. Whatever comes and goes meanwhile, an
    /// event that stays live comes once; a stream that is dropped asks for no more pages. After an error there is nothing more.
    ///
    /// The stream gives [`Error::Problem`], [`Error::Connection`], or [`Error::Timeout`].
    pub fn events(&self, query: Query) -> impl Stream<Item = Result<Feature, Error>> + Send + Unpin + use<> {
        let begin = (self.clone(), query, VecDeque::new(), Next::Page(None));
        Box::pin(stream::try_unfold(begin, async |(broker, query, mut features, mut next)| {
            loop {
                if let Some(feature) = VecDeque::pop_front(&mut features) {
                    return Ok(Some((feature, (broker, query, features, next))));
                }
                let Next::Page(after) = next else { return Ok(None) };
                let page: Page = broker.get(&query.path(after.as_deref())).await?;
                (features, next) =
                    (page.features, page.next.map_or(Next::End, |after| Next::Page(Some(after))));
            }
        }))
    }

    /// Where a client is: itself exactly, others as the broker's setting `privacy.round_m` permits.
    ///
    /// # Errors
    /// [`Error::Problem`] with `not-found` where it has told no position and `forbidden` where it is not shown, [`Error::Connection`], and
    /// [`Error::Timeout`].
    pub async fn position(&self, client: &str) -> Result<wire::ClientPosition, Error> {
        self.get(&format!("{}/position", crate::http::client_path(client))).await
    }

    /// Where a client's areas along routes lie now, how far it is to the end of each way, and why one lies nowhere: to the client itself those in
    /// force, to others what they would be from where `privacy.round_m` shows it.
    ///
    /// # Errors
    /// [`Error::Problem`] with `no-streets` where the broker knows no streets and `forbidden` where the client is not shown,
    /// [`Error::Connection`], and [`Error::Timeout`].
    pub async fn client_routes(&self, client: &str) -> Result<Vec<wire::ClientRoute>, Error> {
        let path = format!("{}/routes?limit=1000", crate::http::client_path(client));
        let mut page: wire::ClientRoutes = self.get(&path).await?;
        while let Some(after) = page.next.take() {
            let next: wire::ClientRoutes = self.get(&format!("{path}&after={}", encoded(&after))).await?;
            page.routes.extend(next.routes);
            page.next = next.next;
        }
        Ok(page.routes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr;

    #[test]
    fn a_question_is_a_query() {
        assert_eq!(Query::all().path(None), "/v1/events?limit=1000");
        let near = Query::near([9.0, -45.5], 500.0).when(attr("a b").eq("c&d")).client("ann e").page(5);
        let expected = "/v1/events?limit=5&near=9,-45.5,500&where=%22a%20b%22%20%3D%20%27c%26d%27&client=ann%20e&after=00";
        assert_eq!(near.path(Some("00")), expected);
    }
}
