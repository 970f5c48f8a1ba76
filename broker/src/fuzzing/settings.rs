//! Settings files and environment variables.

use crate::config;

/// A file of settings. Lines before it that begin with `BROKER__` are the environment.
pub fn settings(data: &[u8]) {
    let Ok(mut text) = std::str::from_utf8(data) else { return };
    let mut environment = Vec::new();
    while text.starts_with("BROKER__") {
        let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        environment.push((name.to_owned(), value.to_owned()));
        text = rest;
    }
    match config::of_text(text, &environment) {
        Ok((config, shown)) => {
            assert!(config.faults().is_empty());
            // What is shown is a file of settings, which says the same.
            let (again, shown_again) =
                config::of_text(&shown, &[]).unwrap_or_else(|error| panic!("{error}\n{shown}"));
            assert_eq!(shown_again, shown);
            assert_eq!(format!("{again:?}"), format!("{config:?}"));
            // What checked settings are used for without asking again.
            let _ = config.address();
        }
        Err(error) => {
            assert!(!error.faults.is_empty() && error.faults.iter().all(|fault| !fault.trim().is_empty()));
        }
    }
}
