//! Formats that are not JSON, as events and as positions.

use serde_json::{Value, json};

use super::testing::read_all;
use super::{Format, features, positions};

/// Lines, and Features without their made-up ids, or what is wrong.
fn events(text: impl Into<Vec<u8>>) -> Vec<(u64, Result<Value, String>)> {
    let found = read_all(text, |reader, feed| features::read_as(None, reader, feed));
    let read = |content: Result<String, super::Unreadable>| match content {
        Ok(text) => {
            let mut feature: Value = serde_json::from_str(&text).unwrap();
            if feature["id"].as_str().is_some_and(|id| id.len() == 32) {
                feature.as_object_mut().unwrap().remove("id");
            }
            Ok(feature)
        }
        Err(fault) => Err(format!("{}{}", if fault.is_last { "last: " } else { "" }, fault.why)),
    };
    found.into_iter().map(|(line, _, content)| (line, read(content))).collect()
}

/// What is wrong with an input, by line.
fn faults(text: impl Into<Vec<u8>>) -> Vec<(u64, String)> {
    events(text).into_iter().filter_map(|(line, found)| Some((line, found.err()?))).collect()
}

fn feature(coordinates: Value, properties: Value) -> Value {
    json!({"type": "Feature", "geometry": {"type": "Point", "coordinates": coordinates}, "properties": properties})
}

#[test]
fn the_header_of_csv_says_what_is_where() {
    let text = "\u{feff}id,Latitude,lng,type,severity,open,note,time,key\r\n\
        a-1,45.46,9.19,accident,3,true,\"one, two\",2026-03-01T07:30:00Z,k\r\n\
        \r\n\
        ,45.46,9.20,007,-1.5e3,no,,,\r\n";
    let found = events(text);
    let mut first = feature(
        json!([9.19, 45.46]),
        json!({"type": "accident", "severity": 3, "open": true, "note": "one, two"}),
    );
    for (name, value) in [("id", "a-1"), ("key", "k"), ("time", "2026-03-01T07:30:00Z")] {
        first[name] = value.into();
    }
    let second = feature(json!([9.2, 45.46]), json!({"type": "007", "severity": -1500.0, "open": "no"}));
    assert_eq!(found, [(2, Ok(first)), (4, Ok(second))]);
    // Whatever stands between, and in which order.
    for text in ["x;y;ele\n9;45;120\n", "lat\tlon\talt\n45\t9\t120\n"] {
        assert_eq!(events(text), [(2, Ok(feature(json!([9.0, 45.0, 120.0]), json!({}))))], "{text}");
    }
}

#[test]
fn members_of_events_are_columns_too() {
    let found = events(
        "lon,lat,TTL_s,reach_m,priority,type\n9,45,600,500,alarm,fire\n9,45,,,,fire\n9,45,soon,,,fire\n",
    );
    let plain = || feature(json!([9.0, 45.0]), json!({"type": "fire"}));
    let (mut full, mut wrong) = (plain(), plain());
    for (name, value) in [("ttl_s", json!(600)), ("reach_m", json!(500)), ("priority", json!("alarm"))] {
        full[name] = value;
    }
    // The broker says what is wrong with it.
    wrong["ttl_s"] = json!("soon");
    assert_eq!(found, [(2, Ok(full)), (3, Ok(plain())), (4, Ok(wrong))]);
}

#[test]
fn cells_may_have_lines_and_quotes() {
    let text = "lon,lat,text\n9,45,\"one\ntwo \"\"three\"\"\"\n9,45,5\" pipe\n9,45,4\" pipe\n9,45,end";
    let texts: Vec<_> = events(text)
        .into_iter()
        .map(|(line, found)| (line, found.unwrap()["properties"]["text"].clone()))
        .collect();
    assert_eq!(
        texts,
        [(2, json!("one\ntwo \"three\"")), (4, json!("5\" pipe")), (5, json!("4\" pipe")), (6, json!("end"))]
    );
}

#[test]
fn rows_that_are_none_are_told_and_the_next_one_comes() {
    let text = b"lon,lat,type\n9,45\n,45,a\n9,north,a\n9,nan,a\n9,45,\xff\n9,45,a\n";
    let found = events(text);
    let told: Vec<_> =
        found.iter().map(|(line, found)| (*line, found.as_ref().err().map(String::as_str))).collect();
    assert_eq!(
        told,
        [
            (2, Some("it has 2 cells, and the first line names 3")),
            (3, Some("it has no longitude")),
            (4, Some("latitude is \"north\", which is no number")),
            (5, Some("latitude is \"nan\", which is no number")),
            (6, Some("its property \"type\" is not UTF-8")),
            (7, None),
        ]
    );
}

#[test]
fn headers_that_do_not_say_enough_end_it() {
    for (text, told) in [
        ("9.19,45.46,fire\n", "last: CSV begins with a line that names its columns"),
        (
            "lat,type\n",
            "last: no column is the longitude (lon, lng, long, longitude, x); there are lat, type",
        ),
        ("lon;name\n", "last: no column is the latitude (lat, latitude, y); there are lon, name"),
        ("lon,lat,x\n", "last: two columns are the longitude"),
        ("lon,lat,a,a\n", "last: two columns are the property \"a\""),
    ] {
        let found = faults(text);
        assert!(found.len() == 1 && found[0].0 == 1 && found[0].1.starts_with(told), "{text}: {found:?}");
    }
    let endless = format!("lon,lat\n9,\"{}", "45\n".repeat(1 << 19));
    assert_eq!(
        faults(endless),
        [(2, "last: it is longer than 1 MiB, or a quote in it has no end".to_owned())]
    );
}

#[test]
fn points_of_gpx_come_in_their_order() {
    let text = r#"<?xml version="1.0"?>
<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1">
 <metadata><name>all</name></metadata>
 <wpt lat="45.46" lon="9.19">
  <ele>120.5</ele><time>2026-03-01T07:30:00Z</time>
  <name>Caf&#233; &amp; <![CDATA[<bar>]]></name><hdop>1.5</hdop><sym>7</sym>
  <link href="x"><text>no</text></link>
  <extensions><a:b xmlns:a="x"><name>no</name></a:b></extensions>
 </wpt>
 <trk><name>not a point's</name><trkseg>
  <trkpt lat="45.47" lon="9.20"/>
  <trkpt lat="north" lon="9.20"><ele>1</ele></trkpt>
  <trkpt lon="9.20"/>
  <trkpt lat="45.48" lon="9.21"><ele>high</ele></trkpt>
  <trkpt lat="45.49" lon="9.22"><name/></trkpt>
 </trkseg></trk>
</gpx>
"#;
    let mut first =
        feature(json!([9.19, 45.46, 120.5]), json!({"name": "Café & <bar>", "hdop": 1.5, "sym": "7"}));
    first["time"] = "2026-03-01T07:30:00Z".into();
    assert_eq!(
        events(text),
        [
            (4, Ok(first)),
            (11, Ok(feature(json!([9.2, 45.47]), json!({})))),
            (12, Err("lat is \"north\", which is no number".to_owned())),
            (13, Err("it has no lat".to_owned())),
            (14, Err("ele is \"high\", which is no number".to_owned())),
            (15, Ok(feature(json!([9.22, 45.49]), json!({})))),
        ]
    );
}

#[test]
fn what_is_no_gpx_ends_it() {
    let point = "<trkpt lat=\"45\" lon=\"9\">";
    for (text, line, told) in [
        ("<html>\n</html>", 1, "last: this is no GPX: found <html>"),
        ("<!-- -->\n", 2, "last: this is no GPX: no <gpx> begins in it"),
        ("<gpx>\n<trk>", 2, "last: the file ends before its document does"),
        ("<gpx>\n</trk>", 2, "last: malformed XML: "),
        (&format!("<gpx>\n{point}<name>&nothing;"), 2, "last: malformed XML: a reference to nothing"),
        (&format!("<gpx>{point}<name>{}", "x".repeat(3 << 20)), 1, "last: it is longer than 1 MiB"),
        (&format!("<gpx>{point}{}", "<a></a>".repeat(1 << 18)), 1, "last: it is longer than 1 MiB"),
    ] {
        let found = faults(text);
        let text = &text[..text.len().min(60)];
        assert!(found.len() == 1 && found[0].0 == line && found[0].1.starts_with(told), "{text}: {found:?}");
    }
}

/// A sentence with its checksum.
fn sentence(text: &str) -> String {
    format!("${text}*{:02X}\r\n", text.bytes().fold(0, |sum, byte| sum ^ byte))
}

#[test]
fn fixes_of_a_receiver_come_once_each_with_their_date() {
    let gga = |time: &str, lat: &str| {
        sentence(&format!("GPGGA,{time},{lat},N,00911.400,E,1,08,0.9,120.5,M,46.9,M,,"))
    };
    let rmc = |time: &str, lat: &str, date: &str| {
        sentence(&format!("GNRMC,{time},A,{lat},N,00911.400,E,022.4,084.4,{date},,,A"))
    };
    let text = [
        gga("235958", "4527.600"),
        sentence("GPGSV,1,1,00"),
        rmc("235958", "4527.600", "280226"),
        gga("235959.50", "4527.660"),
        rmc("235959.50", "4527.660", "280226"),
        // A day on, of which the first sentence does not know.
        gga("000000", "4527.720"),
        rmc("000001", "4527.780", "010326"),
        // Nothing is seen.
        sentence("GPGGA,000002,,,,,0,00,,,M,,M,,"),
        sentence("GPRMC,000002,V,,,,,,,010326,,,N"),
    ]
    .concat();
    let found = events(text);
    let shown: Vec<_> = found
        .iter()
        .map(|(line, found)| {
            let feature = found.as_ref().unwrap();
            let at = feature["geometry"]["coordinates"].as_array().unwrap();
            (*line, at.len(), (at[1].as_f64().unwrap() * 1000.0).round(), feature["time"].as_str())
        })
        .collect();
    assert_eq!(
        shown,
        [
            (1, 3, 45_460.0, Some("2026-02-28T23:59:58Z")),
            (4, 3, 45_461.0, Some("2026-02-28T23:59:59.500Z")),
            (6, 3, 45_462.0, None),
            (7, 2, 45_463.0, Some("2026-03-01T00:00:01Z")),
        ]
    );
    let first = found[0].1.as_ref().unwrap();
    assert_eq!(first["geometry"]["coordinates"][2], 120.5);
    assert_eq!(first["properties"], json!({"satellites": 8.0, "hdop": 0.9}));
    assert_eq!(found[3].1.as_ref().unwrap()["properties"], json!({"speed_kn": 22.4, "course_deg": 84.4}));
    // Without any date each comes all the same.
    let lines = events([gga("1", "4527.600"), gga("100000", "4527.600"), gga("100001", "4527.600")].concat());
    assert_eq!(lines.len(), 3, "{lines:?}");
}

#[test]
fn bad_sentences_are_told_by_line() {
    let good = sentence("GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,");
    let text = format!("{good}\n{}nonsense\n$GPGGA,1,2\n$GPRMC,\n$", good.replace("4807", "4808"));
    let found = faults(text);
    let told: Vec<_> = found.iter().map(|(line, why)| (*line, why.as_str())).collect();
    assert_eq!(told[0].0, 3);
    assert!(told[0].1.starts_with("its checksum is 47, and its characters make "), "{told:?}");
    assert_eq!(
        told[1..],
        [
            (4, "it is no NMEA sentence, which begins with $"),
            (5, "it is no whole GGA sentence with a checksum"),
            (6, "it is no whole RMC sentence with a checksum"),
        ]
    );
}

#[test]
fn positions_come_from_all_of_them() {
    let gga = sentence("GPGGA,123519,4530.000,N,00900.000,E,1,08,0.9,120,M,46.9,M,,");
    for (format, text) in [
        (None, "client,lat,lon,accuracy_m,ele\ncar-7,45.5,9,3,120\n"),
        (Some(Format::Csv), "client,lat,lon,accuracy_m,ele\ncar-7,45.5,9,3,120\n"),
        (None, "<gpx><trkpt lat=\"45.5\" lon=\"9\"><ele>120</ele></trkpt></gpx>"),
        (None, gga.as_str()),
        (Some(Format::Json), "9,45.5,120"),
    ] {
        let read = match format {
            None => read_all(text, |reader, feed| positions::read_as(None, reader, feed, Ok)),
            Some(Format::Csv) => {
                read_all(text, |reader, feed| positions::read_as(Some(Format::Csv), reader, feed, Ok))
            }
            Some(_) => {
                read_all(text, |reader, feed| positions::read_as(Some(Format::Json), reader, feed, Ok))
            }
        };
        assert_eq!(read.len(), 1, "{text}");
        let placed = read[0].2.as_ref().unwrap();
        assert_eq!(placed.position.coordinates, [9.0, 45.5, 120.0], "{text}");
        let (client, accuracy_m) =
            if text.starts_with("client") { (Some("car-7"), Some(3.0)) } else { (None, None) };
        assert_eq!((placed.client.as_deref(), placed.position.accuracy_m), (client, accuracy_m), "{text}");
    }
}
