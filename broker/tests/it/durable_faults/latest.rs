//! More is kept than may be, of objects that say something new all the time, by a broker that is killed again and again: what is
//! lost last is the last news of each object, and each loss is told.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Form, Http, Serve, encode, feature, soak};

/// Deliveries that are kept at most.
const KEPT_FRAMES: u64 = 24;

/// Objects; as many last news are kept besides others.
const OBJECTS: usize = 12;

/// What was published of an object: numbers go up.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    acknowledged: u64,
    tried: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_news_of_each_object_outlive_kills_and_bounds() {
    let (deaths_count, seed) = (if soak() { 100 } else { 4 }, 20_071_131);
    let seed = std::env::var("NEARCAST_SEED").map_or(seed, |text| text.parse().expect("a seed is a number"));
    let mut rng = StdRng::seed_from_u64(seed);
    let data = TempDir::new().expect("a folder for the data");
    let folder = data.path().to_str().expect("a path that is a text");
    let config = format!("[sessions]\nkept_frames = {KEPT_FRAMES}\n");
    let mut news = [News::default(); OBJECTS];
    let (mut number, mut lost_count) = (0, 0);
    for death in 1..=deaths_count {
        let program = Serve::new().config(&config).args(&["--shards", "2", "--data", folder]).start().await;
        let http = program.http();
        if death == 1 {
            let wish = json!({"filters": [{}], "durable": true, "overflow": "keep-latest"});
            http.put("/v1/clients/car/subscriptions/s", &wish).await.expect(201);
        }
        let life = Duration::from_millis(rng.random_range(0..600));
        let killed = tokio::time::timeout(life, publish(&http, &mut rng, &mut news, &mut number)).await;
        assert!(killed.is_err(), "it publishes until it is cut off");
        program.kill();

        let program = Serve::new().config(&config).args(&["--shards", "2", "--data", folder]).start().await;
        let mut car = program.ws("car").await;
        // An object as the others, so that its older news go first.
        let end_id = format!("end-{death}");
        let mut end = feature(&end_id, [9.0, 45.0], json!({}));
        end["key"] = json!("end");
        program.http().post("/v1/events", "application/geo+json", end.to_string()).await.expect(202);
        let mut frames = Vec::new();
        while frames.last().is_none_or(|frame: &Value| frame["event"]["id"] != end_id.as_str()) {
            frames.push(car.next().await);
        }
        let acknowledged = car.ready["offset"].as_u64().expect("a number");
        let (latest, lost) = follow(&frames, acknowledged)
            .unwrap_or_else(|fault| panic!("NEARCAST_SEED={seed}, death {death}: {fault}: {frames:#?}"));
        lost_count += lost;
        for (object, news) in news.iter().enumerate().filter(|(_, news)| news.acknowledged > 0) {
            let there = latest.get(&(object as u64)).copied().unwrap_or_default();
            assert!(
                (news.acknowledged..=news.tried).contains(&there),
                "NEARCAST_SEED={seed}, death {death}: of object {object} {there} is there, of {news:?}: {frames:#?}"
            );
        }
        program.kill();
    }
    println!(
        "seed {seed}: {deaths_count} kills, {number} news, {lost_count} lost and told, none of them the last"
    );
    assert!(lost_count > deaths_count, "too few were published to mean anything");
}

/// Publishes news of some objects, then of some more.
async fn publish(http: &Http, rng: &mut StdRng, news: &mut [News], number: &mut u64) {
    loop {
        let objects = rand::seq::index::sample(rng, news.len(), 4);
        let events = objects.iter().map(|object| {
            *number += 1;
            news[object].tried = *number;
            let mut event =
                feature(&format!("e{number}"), [9.0, 45.0], json!({"number": *number, "object": object}));
            event["key"] = json!(format!("object-{object}"));
            event
        });
        let (content_type, body) = encode(Form::Lines, &events.collect::<Vec<_>>());
        http.post("/v1/events", content_type, body).await.expect(202);
        objects.iter().for_each(|object| news[object].acknowledged = news[object].tried);
    }
}

/// The last news of each object, and how much was lost; each offset is there, or in a gap.
fn follow(frames: &[Value], acknowledged: u64) -> Result<(BTreeMap<u64, u64>, u64), String> {
    let (mut latest, mut lost_count, mut offset, mut kept_count) = (BTreeMap::new(), 0, acknowledged, 0);
    for frame in frames {
        if frame["op"] == "gap" {
            let [from, to, count] =
                ["from", "to", "count"].map(|name| frame[name].as_u64().unwrap_or_default());
            if (from, count) != (offset + 1, to - offset) || frame["reason"] != "overflow" {
                return Err(format!("no such gap can be after {offset}: {frame}"));
            }
            (offset, lost_count) = (to, lost_count + count);
            continue;
        }
        offset += 1;
        if frame["offset"] != offset {
            return Err(format!("{offset} is neither there nor told to be lost"));
        }
        kept_count += 1;
        let of = |name: &str| frame["event"]["properties"][name].as_u64();
        if let (Some(object), Some(number)) = (of("object"), of("number"))
            && latest.insert(object, number).is_some_and(|before| before > number)
        {
            return Err(format!("older news of object {object} came after newer: {frame}"));
        }
    }
    if kept_count > KEPT_FRAMES + 1 {
        return Err(format!("{kept_count} were kept"));
    }
    Ok((latest, lost_count))
}
