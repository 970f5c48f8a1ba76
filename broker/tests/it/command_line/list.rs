//! `nearcast clients`, `stats` and `completions`.

use serde_json::json;
use tempfile::TempDir;

use super::{Typed, typed, typed_with};
use crate::authorisation::{ISSUER, guarded};
use crate::harness::{Serve, run_to_end};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_and_figures_are_shown_for_people_and_for_programs() {
    let program = Serve::new().start().await;
    assert_eq!(typed(&program, &["clients"], "").await.with(0).out, "no clients");
    let _ann = program.ws("ann").await;
    for name in ["bob", "eve\u{202e}"] {
        let path = format!("/v1/clients/{}/subscriptions/s", name.replace('\u{202e}', "%E2%80%AE"));
        program.http().put(&path, &json!({"filters": [{}]})).await.expect(201);
    }
    let shown = typed(&program, &["clients"], "").await.with(0).out;
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines.len(), 4, "{shown}");
    assert!(lines[0].starts_with("client ") && lines[0].contains("behind"), "{shown}");
    assert!(lines.iter().any(|line| line.starts_with("ann ")), "{shown}");
    assert!(!shown.contains('\u{202e}') && shown.contains("eve"), "{shown}");
    let lines = typed(&program, &["clients", "--json"], "").await.with(0).out;
    let clients: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let bob = clients.iter().find(|client| client["client"] == "bob").expect("he is there");
    assert_eq!((clients.len(), &bob["subscriptions"], &bob["connections"]), (3, &json!(1), &json!(0)));
    assert_eq!(
        typed(&program, &["clients", "--json", "--limit", "2"], "").await.with(0).out.lines().count(),
        2
    );

    typed(&program, &["pub", "--at", "9.19,45.464"], "").await.with(0);
    let shown = typed(&program, &["stats"], "").await.with(0).out;
    assert!(shown.starts_with(concat!("nearcast ", env!("CARGO_PKG_VERSION"))), "{shown}");
    let row = |name: &str| {
        shown.lines().find(|line| line.starts_with(name)).map(|line| line.split_whitespace().last())
    };
    assert_eq!((row("events "), row("clients ")), (Some(Some("1")), Some(Some("3"))), "{shown}");
    let stats = typed(&program, &["stats", "--json"], "").await.with(0).json();
    assert_eq!((&stats["events"], &stats["clients"]), (&json!(1), &json!(3)));
    // Every figure that the broker gives is in the table.
    for (name, value) in stats.as_object().expect("an object").iter().filter(|(_, value)| value.is_u64()) {
        assert!(row(&format!("{} ", name.replace('_', " "))).is_some(), "{name} {value}: {shown}");
    }
    program.finish().await;
}

/// A thousand are a page of the broker's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_several_pages_are_shown_each_once() {
    let program = Serve::new().start().await;
    let mut moving = Typed::start(&program, &["move", "-"]);
    for n in 0..1_200 {
        moving.say(&format!("{{\"client\": \"c{n}\", \"coordinates\": [9, 45]}}\n"));
    }
    assert_eq!(moving.end().await.with(0).out, "1,200 moved");
    let lines = typed(&program, &["clients", "--json"], "").await.with(0).out;
    let mut names: Vec<_> = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect(line)["client"].to_string())
        .collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 1_200);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_may_not_see_them_is_told_so() {
    let (serve, _) = guarded(&ISSUER, "");
    let program = serve.start().await;
    let token = ISSUER.token("ann", "subscribe");
    for verb in ["clients", "stats"] {
        let ended = typed_with(&program, &[verb], &[("NEARCAST_TOKEN", &token)], "").await.with(1);
        assert!(ended.err.contains("scope admin") && ended.err.lines().count() == 1, "{ended:?}");
        let token = ISSUER.token("root", "admin");
        typed_with(&program, &[verb], &[("NEARCAST_TOKEN", &token)], "").await.with(0);
    }
    program.finish().await;
}

#[test]
fn shells_are_told_what_can_be_typed() {
    let folder = TempDir::new().expect("a folder");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = run_to_end(&["completions", shell], &[], folder.path());
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(output.status.success(), "{shell}");
        for word in ["nearcast", "serve", "print-config", "completions", "token", "listen"] {
            assert!(text.contains(word), "{shell}: {word}");
        }
    }
    // A shell takes it, and offers a verb for what was begun.
    let script = "source <(\"$0\" completions bash); COMP_WORDS=(nearcast exp); COMP_CWORD=1; _nearcast nearcast exp nearcast; echo ${COMPREPLY[@]}";
    let bash = std::process::Command::new("bash")
        .args(["--noprofile", "--norc", "-c", script, env!("CARGO_BIN_EXE_nearcast")])
        .output()
        .expect("there is bash");
    assert_eq!(String::from_utf8_lossy(&bash.stdout).trim(), "explain", "{bash:?}");
}
