//! Settings from files, variables and flags, and what is told when they are wrong.

use figment::value::Value;

use super::*;

fn sources(flags: Vec<(&'static str, Value)>) -> Sources {
    Sources { flags, ..Sources::default() }
}

fn load_with(toml: &str, mut sources: Sources) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nearcast.toml");
    std::fs::write(&path, toml).unwrap();
    sources.file = Some(path);
    Config::load(&sources)
}

fn load(toml: &str, flags: Vec<(&'static str, Value)>) -> Result<Config, ConfigError> {
    load_with(toml, sources(flags))
}

#[test]
fn the_defaults_are_complete_and_without_faults() {
    assert_eq!(Config::default().faults(), Vec::<String>::new());
    assert_eq!(Config::default().server.listen, "127.0.0.1:7070");
}

#[test]
fn every_key_is_explained() {
    let mut explained = false;
    for line in DEFAULT_TOML.lines() {
        if line.contains(" = ") && !line.starts_with('#') {
            assert!(explained, "{line} has no explanation");
        }
        // Keys of a group share the explanation above them.
        explained = line.starts_with('#') || (explained && line.contains(" = "));
    }
}

#[test]
fn later_layers_win() {
    let toml = "[server]\nlisten = \"127.0.0.1:1\"\nshards = 3\n[limits]\ndepth = 9\n";
    let config = load(toml, vec![("server.listen", Value::from("127.0.0.1:2"))]).unwrap();
    assert_eq!(config.server.listen, "127.0.0.1:2");
    assert_eq!((config.server.shards, config.limits.depth), (3, 9));
    assert_eq!(config.queue.commands, Config::default().queue.commands);
}

#[test]
fn the_environment_stands_between_file_and_flags() {
    let variables = [
        ("BROKER__SERVER__LISTEN", "127.0.0.1:2"),
        ("BROKER__SERVER__SHARDS", "4"),
        ("BROKER__LIMITS__BODY_BYTES", "77"),
        ("BROKER", "no setting"),
    ];
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let mut sources = sources(vec![("server.shards", Value::from(5_u64))]);
    sources.environment = variables.iter().map(owned).collect();
    let toml = "[server]\nlisten = \"127.0.0.1:1\"\nshards = 3\n";
    let config = load_with(toml, sources.clone()).unwrap();
    assert_eq!(config.server.listen, "127.0.0.1:2");
    assert_eq!((config.server.shards, config.limits.body_bytes), (5, 77));
    sources.environment.push(owned(&("BROKER__SERVER__LISTN", "x")));
    let error = load_with(toml, sources).unwrap_err();
    assert_eq!(
        error.faults,
        [
            "server.listn is not a setting (in environment variable BROKER__SERVER__LISTN): did you mean server.listen?"
        ]
    );
}

#[test]
fn every_setting_can_be_set_by_the_environment() {
    let mut section = "";
    let mut count = 0;
    for line in DEFAULT_TOML.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        }
        let Some((key, default)) = line.split_once(" = ") else { continue };
        // Another value where any will do. Some texts are names of something.
        let value = match default {
            "true" => "false",
            "false" => "true",
            text if text.starts_with('"') => text,
            number if number.contains('.') => "0.25",
            _ => "1000",
        };
        let name = format!("BROKER__{section}__{key}").to_uppercase();
        let sources = Sources { environment: vec![(name, value.to_owned())], ..Sources::default() };
        let figment = layers::assemble(&sources).unwrap();
        figment.extract::<Config>().unwrap();
        assert!(layers::explained(&figment).contains(&format!("\n{key} = {value}\n")), "{section}.{key}");
        count += 1;
    }
    assert!(count > 100, "{count}");
}

#[test]
fn a_fault_says_what_was_probably_meant() {
    for (toml, told) in [
        ("[limit]\na = 1\n", &["limit is not a setting", "did you mean limits?"][..]),
        ("[server]\ndata = \"x\"\n", &["server.data is not a setting", "did you mean store.data?"]),
        ("[server]\ncolour = 1\n", &["server.colour is not a setting"]),
        (
            "[auth]\nmode = \"jtw\"\n",
            &["auth.mode is \"jtw\", and can be none, jwt, oidc", "did you mean jwt?"],
        ),
        ("[auth]\nmode = \"oidc\"\n", &["the address of the tokens' issuer"]),
        ("[auth]\nmode = \"oidc\"\nissuer = \"id.example\"\n", &["auth.issuer has no scheme"]),
        ("[auth]\nmode = \"oidc\"\nissuer = \"http://id.example\"\n", &["over https alone"]),
    ] {
        let faults = load(toml, Vec::new()).unwrap_err().faults;
        let [fault] = faults.as_slice() else { panic!("{faults:?}") };
        assert!(told.iter().all(|part| fault.contains(part)), "{fault}");
        assert!(!fault.contains("variant") && !fault.contains("default."), "{fault}");
    }
}

#[test]
fn all_faults_are_told_at_once() {
    let toml = "[server]\nshard = 3\nlisten = 5\n[limit]\na = 1\n[limits]\ndepth = -1\n";
    let faults = load(toml, Vec::new()).unwrap_err().faults;
    assert_eq!(faults.len(), 4, "{faults:?}");
    let toml = "[server]\nlisten = \"0.0.0.0:1\"\n[limits]\ndepth = 0\n[tls]\ncert = \"x\"\n";
    let faults = load(toml, Vec::new()).unwrap_err().faults;
    assert_eq!(faults.len(), 3, "{faults:?}");
    let toml = "[limits]\nttl_s = 3153600001\nlive_events = 1000000001\nnearest = 0\nnearest_filters = 0\nmembers_per_subscription = 0\n";
    let faults = load(toml, Vec::new()).unwrap_err().faults;
    assert_eq!(faults.len(), 5, "{faults:?}");
    let toml = "[store]\nfsync_ms = 0\n[sessions]\nkept_frames = 0\nkept_total_bytes = 5\nkept_s = 3153600001\n\
        [limits]\ntrack_points = 0\ntrack_bytes = 0\n";
    let faults = load(toml, Vec::new()).unwrap_err().faults;
    assert_eq!(faults.len(), 6, "{faults:?}");
    for round_m in ["1000001", "-2"] {
        let faults = load(&format!("[privacy]\nround_m = {round_m}\n"), Vec::new()).unwrap_err().faults;
        assert!(faults.len() == 1 && faults[0].contains("privacy.round_m"), "{faults:?}");
    }
    let toml = "[server]\nworld = \"planar\"\n[limits]\nname_bytes = 3\n[console]\nbase_map = \"demo\"\nobject = \"taxi\"\n";
    let faults = load(toml, Vec::new()).unwrap_err().faults;
    assert!(
        faults.len() == 2 && faults[0].contains("console.base_map") && faults[1].contains("console.object"),
        "{faults:?}"
    );
    let faults =
        load("[console]\ninterests = \"\"\"\nFires: type =\n\"\"\"\n", Vec::new()).unwrap_err().faults;
    assert!(faults.len() == 1 && faults[0].contains("console.interests, line 1"), "{faults:?}");
    for notice in ["two\\nlines", &"x".repeat(101)] {
        let faults = load(&format!("[console]\nnotice = \"{notice}\"\n"), Vec::new()).unwrap_err().faults;
        assert!(faults.len() == 1 && faults[0].contains("console.notice"), "{faults:?}");
    }
    assert!(load("[sessions]\ninaccurate_fixes = \"guess\"\n", Vec::new()).is_err());
}

#[test]
fn devices_get_larger_batches_unless_set() {
    let mut queue = Config::default().queue;
    assert_eq!((queue.batch_of(false, true), queue.batch_of(true, true)), (2_048, 8_192));
    queue.commands = 1_000_000;
    assert_eq!((queue.batch_of(false, false), queue.batch_of(true, false)), (512, 65_536));
    queue.batch = 7;
    assert_eq!((queue.batch_of(false, true), queue.batch_of(true, false)), (7, 7));
}

#[test]
fn beyond_loopback_nobody_is_let_in_by_accident() {
    for listen in ["0.0.0.0:7070", "[::]:7070", "192.168.1.4:80"] {
        let flags = |insecure: bool| {
            vec![("server.listen", Value::from(listen)), ("server.insecure", Value::from(insecure))]
        };
        let faults = Config::load(&sources(flags(false))).unwrap_err().faults;
        assert!(faults[0].contains("--insecure"), "{faults:?}");
        assert!(Config::load(&sources(flags(true))).is_ok());
    }
    assert!(Config::load(&sources(vec![("server.listen", Value::from("[::1]:0"))])).is_ok());
    let with_tokens = vec![
        ("server.listen", Value::from("0.0.0.0:7070")),
        ("auth.mode", Value::from("jwt")),
        ("auth.jwks", Value::from("keys.json")),
    ];
    assert!(Config::load(&sources(with_tokens)).is_ok());
}

#[test]
fn positions_are_shown_by_default_only_where_everybody_may_read_everything() {
    let shown_m = |toml: &str| load(toml, Vec::new()).unwrap().shown_m();
    assert_eq!(shown_m(""), 1);
    assert_eq!(shown_m("[auth]\nmode = \"jwt\"\njwks = \"keys.json\"\n"), 0);
    assert_eq!(shown_m("[server]\nlisten = \"0.0.0.0:7070\"\ninsecure = true\n"), 0);
    assert_eq!(shown_m("[privacy]\nround_m = 0\n"), 0);
    assert_eq!(
        shown_m("[privacy]\nround_m = 100\n[server]\nlisten = \"0.0.0.0:7070\"\ninsecure = true\n"),
        100
    );
}

#[test]
fn keys_and_tokens_go_together() {
    for (toml, word) in [
        ("[auth]\nmode = \"jwt\"\n", "auth.jwks"),
        ("[auth]\njwks = \"keys.json\"\n", "auth.mode"),
        ("[auth]\nzones = \"zones.json\"\n", "auth.zones"),
        ("[auth]\nmode = \"jwt\"\njwks = \"keys.json\"\nleeway_s = 86401\n", "auth.leeway_s"),
        ("[auth]\nmode = \"jwt\"\njwks = \"http://id.example/keys\"\n", "auth.jwks"),
        ("[auth]\nmode = \"jwt\"\njwks = \"https://ann:hidden@id.example/keys\"\n", "auth.jwks"),
        ("[auth]\nmode = \"oidc\"\n", "auth.issuer"),
        ("[auth]\nmode = \"oidc\"\nissuer = \"http://id.example\"\n", "auth.issuer"),
        ("[auth]\nmode = \"oidc\"\nissuer = \"https://id.example/?key=hidden\"\n", "auth.issuer"),
        (
            "[auth]\nmode = \"oidc\"\nissuer = \"https://id.example\"\njwks = \"keys.json\"\n",
            "auth.mode oidc asks auth.issuer",
        ),
        ("[auth]\ntenant_claim = \"\"\n", "auth.tenant_claim"),
    ] {
        let faults = load(toml, Vec::new()).unwrap_err().faults;
        assert!(faults.len() == 1 && faults[0].contains(word), "{toml}: {faults:?}");
        assert!(!faults[0].contains("hidden"), "{toml}: {faults:?}");
    }
    for toml in [
        "[auth]\nmode = \"jwt\"\njwks = \"https://id.example/keys\"\n",
        "[auth]\nmode = \"oidc\"\nissuer = \"https://id.example/realms/fleet\"\naudience = \"nearcast\"\n",
    ] {
        assert!(load(toml, Vec::new()).unwrap().wants_tokens(), "{toml}");
    }
}

#[test]
fn the_address_that_clients_are_told_has_no_secret() {
    let faults = |url: &str| {
        let cluster = format!("nats = \"nats://a:1\"\nurl = {url:?}");
        load(&format!("[store]\ndata = \"d\"\n[cluster]\n{cluster}\n"), Vec::new())
            .map_err(|error| error.faults)
    };
    for url in ["", "http://10.0.0.1:7070", "https://a.example/nearcast"] {
        faults(url).unwrap();
    }
    for url in
        ["a.example:7070", "nats://a:1", "https://", "https://user:secret@a:1", "https://a:1?key=secret"]
    {
        let told = faults(url).unwrap_err();
        assert!(
            told.len() == 1 && told[0].contains("cluster.url") && !told[0].contains("secret"),
            "{url}: {told:?}"
        );
    }
}

#[test]
fn a_collector_is_spoken_to_over_http_and_samples_are_a_share() {
    let faults =
        |toml: &str| load(&format!("[telemetry]\n{toml}\n"), Vec::new()).map_err(|error| error.faults);
    for endpoint in ["http://127.0.0.1:4318", "http://collector/otlp/", "http://[::1]:4318", ""] {
        faults(&format!("otlp_endpoint = {endpoint:?}")).unwrap();
    }
    for endpoint in
        ["localhost:4318", "https://a:1", "http://", "http://user:secret@a:1", "http://a:1?key=secret"]
    {
        let told = faults(&format!("otlp_endpoint = {endpoint:?}")).unwrap_err();
        assert!(told.len() == 1 && told[0].contains("telemetry.otlp_endpoint"), "{endpoint}: {told:?}");
        assert!(!told[0].contains("secret@") && !told[0].contains("key="), "{told:?}");
    }
    for (sample, is_right) in [
        ("0", true),
        ("1.0", true),
        ("0.25", true),
        ("1.5", false),
        ("-0.1", false),
        ("nan", false),
        ("\"1\"", false),
    ] {
        assert_eq!(faults(&format!("sample = {sample}")).is_ok(), is_right, "{sample}");
    }
    let shown = explain(&sources(vec![("telemetry.sample", Value::from(0.5))])).unwrap();
    assert_eq!(load(&shown, Vec::new()).unwrap().telemetry.sample, 0.5);
}

#[test]
fn a_share_of_time_that_is_none_is_a_fault() {
    for share in ["0.0", "-1", "1.5", "nan"] {
        let told = self::load(&format!("[situations]\ntenant_time_share = {share}\n"), Vec::new());
        let told = told.map_err(|error| error.faults).unwrap_err();
        assert!(told.len() == 1 && told[0].contains("situations.tenant_time_share"), "{told:?}");
    }
}

#[test]
fn a_controller_that_would_not_settle_is_a_fault() {
    let load = |line: &str| load(&format!("[admission]\n{line}\n"), Vec::new());
    assert_eq!(Config::default().admission.controller, ControllerName::Fixed);
    for line in ["controller = \"pi\"", "tardiness = 1.0", "kp = 0.0", "kp = 0.9", "ki = 1.0"] {
        load(line).unwrap();
    }
    for (key, values) in [
        ("tardiness", ["0.0", "-1", "1.1", "nan"]),
        ("ki", ["0.0", "-0.1", "2", "inf"]),
        ("kp", ["-0.1", "1.0", "nan", "inf"]),
    ] {
        for value in values {
            let told = load(&format!("{key} = {value}")).map_err(|error| error.faults).unwrap_err();
            assert!(told.len() == 1 && told[0].contains(&format!("admission.{key}")), "{told:?}");
        }
    }
    let told = load("controller = \"pid\"").map_err(|error| error.faults).unwrap_err();
    assert!(told.len() == 1 && told[0].contains("controller") && told[0].contains("pid"), "{told:?}");
}

#[test]
fn what_is_shown_can_be_read_again() {
    let flags = vec![("server.shards", Value::from(7_u64)), ("server.engine", Value::from("scan"))];
    let shown = explain(&sources(flags)).unwrap();
    let config = load(&shown, Vec::new()).unwrap();
    assert_eq!((config.server.shards, config.server.engine), (7, EngineName::Scan));
    assert_eq!(explain(&Sources::default()).unwrap(), DEFAULT_TOML);
}

#[test]
fn quotas_are_by_default_for_tenants_with_names_where_tokens_are_wanted() {
    let with_tokens = "[auth]\nmode = \"jwt\"\njwks = \"keys.json\"\n";
    let limits = |toml: &str, tenant: &str| {
        let allotments = load(toml, Vec::new()).unwrap().allotments();
        [allotments.clients, allotments.subscriptions, allotments.live_events, allotments.live_bytes]
            .map(|allotment| allotment.limit(tenant))
    };
    assert_eq!(limits("", "acme"), [0; 4]);
    assert_eq!(limits(with_tokens, ""), [0; 4]);
    assert_eq!(limits(with_tokens, "acme"), [5_000_000, 1_000_000, 500_000, 1 << 30]);
    let set = format!("{with_tokens}[quotas]\ntenant_clients = 0\ntenant_subscriptions = 7\n");
    assert_eq!(limits(&set, "acme")[..2], [0, 7]);
    assert_eq!(limits(&set, "")[..2], [0, 7]);
    let faults = load("[quotas]\ntenant_clients = -2\ntenant_live_bytes = \"many\"\n", Vec::new());
    let faults = faults.unwrap_err().faults;
    assert!(
        faults.len() == 1 && faults[0].contains("quotas.tenant_live_bytes must be a whole number"),
        "{faults:?}"
    );
    let faults = load("[quotas]\ntenant_clients = -2\n", Vec::new()).unwrap_err().faults;
    assert!(faults.len() == 1 && faults[0].contains("quotas.tenant_clients -2"), "{faults:?}");
}
