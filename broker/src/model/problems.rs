//! The dictionary of problems and warnings: every kind that the broker answers, with its cause and its cure, as texts of the page
//! `docs/protocol/problems.md`, which a test makes from it.

/// A kind of problem.
#[cfg_attr(not(test), expect(dead_code, reason = "what is not told in problems themselves is for the page"))]
pub(crate) struct ProblemKind {
    /// Name by which programs know it: the end of its `type`.
    pub(crate) code: &'static str,
    pub(crate) title: &'static str,
    pub(crate) status: u16,
    /// When the broker answers this.
    cause: &'static str,
    /// What to do then.
    cure: &'static str,
    /// Members and headers of the answer besides those of every problem.
    members: &'static str,
}

/// A kind of warning. It has no code: what it is about is carried out.
#[cfg_attr(not(test), expect(dead_code, reason = "what is not told in warnings themselves is for the page"))]
pub(crate) struct WarningKind {
    /// The part of its detail that is always the same.
    pub(crate) text: &'static str,
    cause: &'static str,
    cure: &'static str,
}

pub(crate) static MALFORMED_JSON: ProblemKind = ProblemKind {
    code: "malformed-json",
    title: "malformed JSON",
    status: 400,
    cause: "The text is not JSON, or not UTF-8.",
    cure: "Look at the place that `line` and `column` name. Usual reasons are a comma behind the last member, single quotes, and a shell that has taken quotes away: `curl --json @file` sends a file as it is.",
    members: "`line`, `column`, counted from 1; of lines and sequences within the record",
};
pub(crate) static INVALID_DOCUMENT: ProblemKind = ProblemKind {
    code: "invalid-document",
    title: "the document is not valid",
    status: 400,
    cause: "The text is JSON, but not the document that was asked for: a member is missing, has another type, is out of range, or does not exist.",
    cure: "Correct each place in `errors`. Where a name, an operator or the order of coordinates is nearly right, its `detail` says what was probably meant. The pages on [events](publish.md), [positions](positions.md), [subscriptions](subscribe.md) and [conditions](../semantics.md) have all members.",
    members: "`errors`, each with `pointer` and `detail`",
};
pub(crate) static BAD_REQUEST: ProblemKind = ProblemKind {
    code: "bad-request",
    title: "bad request",
    status: 400,
    cause: "A name in the path, a parameter, `Last-Event-ID`, `?resume=`, or a request for a WebSocket is invalid.",
    cure: "Correct what `detail` names. Names have no control characters and are percent-encoded in paths; `Last-Event-ID` and `resume` are `<epoch>:<offset>`, as the broker has given it.",
    members: "",
};
pub(crate) static INTERRUPTED: ProblemKind = ProblemKind {
    code: "interrupted",
    title: "the body is not complete",
    status: 400,
    cause: "The connection ended within the body.",
    cure: "Send it again. What a [batch](publish.md#batches) did before stays done, and the answer says how far it came.",
    members: "of a batch `accepted` or `moved`, `rejected`, `rejected_unlisted`",
};
/// Title of [`UNAUTHENTICATED`] where a token came.
pub(crate) const TOKEN_REFUSED: &str = "the token is refused";
pub(crate) static UNAUTHENTICATED: ProblemKind = ProblemKind {
    code: "unauthenticated",
    title: "a token is needed",
    status: 401,
    cause: "The broker wants [tokens](identity.md), and the request has none, or none that is valid (title: \"the token is refused\").",
    cure: "Send `Authorization: Bearer <token>`, signed by a key of the broker's. `detail` says what is wrong with the one that came.",
    members: "`WWW-Authenticate`",
};
pub(crate) static TOKEN_EXPIRED: ProblemKind = ProblemKind {
    code: "token-expired",
    title: "the token has expired",
    status: 401,
    cause: "The time of the token is over (claim `exp`).",
    cure: "Get a new one. A WebSocket goes on if the frame [`auth`](identity.md#when-a-token-ends) brings it in time.",
    members: "`WWW-Authenticate`",
};
pub(crate) static FORBIDDEN: ProblemKind = ProblemKind {
    code: "forbidden",
    title: "the token does not permit this",
    status: 403,
    cause: "The token is valid, and its scope, its client (`sub`), its tenant or its confinement does not permit the request.",
    cure: "Use a token with the scope that `detail` names, or one of the client that the request is about. [Identity](identity.md) has a table of calls and scopes.",
    members: "`WWW-Authenticate` where another scope would do",
};
pub(crate) static FOREIGN_ORIGIN: ProblemKind = ProblemKind {
    code: "foreign-origin",
    title: "pages of this origin may not talk to the broker",
    status: 403,
    cause: "A web page of another origin has sent the request.",
    cure: "Name the origin in `server.allowed_origins` if the page is yours: [web pages](identity.md#web-pages-of-other-origins).",
    members: "",
};
pub(crate) static NOT_FOUND: ProblemKind = ProblemKind {
    code: "not-found",
    title: "not found",
    status: 404,
    cause: "There is no such path, subscription or live event.",
    cure: "Compare the path with the [calls](README.md#calls), and the name with what `GET` lists. An event without `ttl_s` and `key` is not [live](live.md), so that it can be neither ended nor asked about.",
    members: "",
};
pub(crate) static NO_PUSH: ProblemKind = ProblemKind {
    code: "no-push",
    title: "no push messages",
    status: 404,
    cause: "The broker sends no [push messages](push.md): `push.enabled` is false, or the machine has no certificates of authorities to know push services by.",
    cure: "Read over a WebSocket or an event stream. The operator switches push messages on with `push.enabled`; the log of the start says what is missing.",
    members: "",
};
pub(crate) static NO_STREETS: ProblemKind = ProblemKind {
    code: "no-streets",
    title: "no streets",
    status: 404,
    cause: "The broker knows no streets, so that there are no [routes](routes.md).",
    cure: "The operator names streets with `--streets` or `routes.streets`.",
    members: "",
};
pub(crate) static NO_ROUTE: ProblemKind = ProblemKind {
    code: "no-route",
    title: "no route",
    status: 404,
    cause: "No [route](routes.md) leads from the one place to the other, or one of them is more than a kilometre away from all streets.",
    cure: "Look at `detail`. Longitude comes before latitude.",
    members: "",
};
pub(crate) static METHOD_NOT_ALLOWED: ProblemKind = ProblemKind {
    code: "method-not-allowed",
    title: "method not allowed",
    status: 405,
    cause: "The path exists, but not with this method.",
    cure: "Use one of the methods that `detail` and `Allow` name.",
    members: "`Allow`",
};
pub(crate) static TOO_SLOW: ProblemKind = ProblemKind {
    code: "too-slow",
    title: "the request came too slowly",
    status: 408,
    cause: "The body paused for more than `connection.body_timeout_ms`, or a document or an element of a batch arrived at less than `connection.body_bytes_per_second`.",
    cure: "Send what is there, and open a request for the rest when there is more. A source that trickles is better off with a [WebSocket](connections.md#websocket).",
    members: "of a batch `accepted` or `moved`, `rejected`, `rejected_unlisted`",
};
pub(crate) static LIMIT_REACHED: ProblemKind = ProblemKind {
    code: "limit-reached",
    title: "a limit is reached",
    status: 409,
    cause: "There are as many things as a [limit](limits.md#limits) allows: subscriptions, constraints, live objects, clients, connections. A connection too many is answered 503.",
    cure: "Delete what is not needed any more, or raise the setting that `setting` names.",
    members: "`limit`, `setting`; `Retry-After: 5` of a connection too many",
};
pub(crate) static TOO_LARGE: ProblemKind = ProblemKind {
    code: "too-large",
    title: "too large",
    status: 413,
    cause: "A document, an element of a batch or a body has more bytes than a [limit](limits.md#limits) allows.",
    cure: "Split it: many events as lines may have up to `limits.body_bytes` together. Or raise the setting that `setting` names.",
    members: "`limit`, `setting`",
};
pub(crate) static UNSUPPORTED_MEDIA_TYPE: ProblemKind = ProblemKind {
    code: "unsupported-media-type",
    title: "unsupported media type",
    status: 415,
    cause: "`Content-Type` names something else than the [bodies](README.md#request-bodies) that the call takes, or the body is compressed. `curl -d` says that a body is a form.",
    cure: "Send `content-type: application/json`, or with curl `--json` in place of `-d`; lines are `application/x-ndjson`.",
    members: "",
};
pub(crate) static FOREIGN_HOST: ProblemKind = ProblemKind {
    code: "foreign-host",
    title: "the broker is not known by this name",
    status: 421,
    cause: "The broker wants no tokens, and `Host` is neither an address, nor `localhost`, nor a name in `server.hosts`: a web page could have [led the name here](identity.md#web-pages-of-other-origins).",
    cure: "Use the address, or name the host in `server.hosts`.",
    members: "",
};
pub(crate) static INCONSISTENT: ProblemKind = ProblemKind {
    code: "inconsistent",
    title: "the event does not fit with others",
    status: 422,
    cause: "A [check](checks.md) with `on_violation` `drop` is violated by the event together with those before it. Nobody receives it.",
    cure: "Look at the events in `links`: each link binds the variables of the check to the ids of the events that do not fit. Events that you may not see are left out. Sent again as it is, the event is refused again.",
    members: "`check`, `links`",
};
pub(crate) static WEBSOCKET_VERSION: ProblemKind = ProblemKind {
    code: "websocket-version",
    title: "another version of the WebSocket protocol",
    status: 426,
    cause: "`Sec-WebSocket-Version` of a request for a WebSocket is not 13.",
    cure: "Use a client that speaks RFC 6455; every present one does.",
    members: "`Sec-WebSocket-Version`, `Upgrade`",
};
pub(crate) static TOO_MANY_EVENTS: ProblemKind = ProblemKind {
    code: "too-many-events",
    title: "too many events",
    status: 429,
    cause: "Events come faster than a [rate](overload.md#rates) of the client or its tenant allows.",
    cure: "Wait as `Retry-After` says and go on; a batch goes on behind what it says was done. The setting is `limits.events_per_second` or the tenant's quota.",
    members: "`limit`, `setting`; `Retry-After: 1`; of a batch `accepted`, `rejected`, `rejected_unlisted`",
};
pub(crate) static TOO_MANY_MOVES: ProblemKind = ProblemKind {
    code: "too-many-moves",
    title: "too many moves",
    status: 429,
    cause: "Positions come faster than a [rate](overload.md#rates) of the client or its tenant allows.",
    cure: "Tell a position when it has changed by some metres, as the clients' `follow` does. The setting is `limits.moves_per_second` or the tenant's quota.",
    members: "`limit`, `setting`; `Retry-After: 1`",
};
pub(crate) static TOO_COSTLY: ProblemKind = ProblemKind {
    code: "too-costly",
    title: "too costly",
    status: 429,
    cause: "The client or its tenant has used more [engine time](overload.md#engine-time) than it may. Nothing was done.",
    cure: "Make the subscriptions in `costliest` smaller: smaller areas, conditions on fewer values. `Retry-After` says when the debt is paid.",
    members: "`limit`, `setting`, `costliest`; `Retry-After`",
};
pub(crate) static OVERLOADED: ProblemKind = ProblemKind {
    code: "overloaded",
    title: "the broker is overloaded",
    status: 429,
    cause: "There is [more to do](overload.md#admission) than the broker can do in time. Nothing was done.",
    cure: "Send it again later, and wait longer each time. If it lasts, [operations](../operations.md) says which figures tell why.",
    members: "`Retry-After: 1`; where pages have too many bytes `limit`, `setting`; of a batch `accepted` or `moved`, `rejected`, `rejected_unlisted`",
};
pub(crate) static INTERNAL: ProblemKind = ProblemKind {
    code: "internal",
    title: "the broker is broken",
    status: 500,
    cause: "A fault of the broker.",
    cure: "Report it with the line that the broker has logged.",
    members: "",
};
pub(crate) static LATE: ProblemKind = ProblemKind {
    code: "late",
    title: "not in time",
    status: 503,
    cause: "A [route](routes.md) could not be found within its `deadline_ms`.",
    cure: "Give it more time, or let it be coarser with `coarsest`.",
    members: "`Retry-After: 1`",
};
pub(crate) static ELSEWHERE: ProblemKind = ProblemKind {
    code: "elsewhere",
    title: "another broker serves the client",
    status: 307,
    cause: "The cluster has several active brokers, each with the clients of its partition, and this client is in another one's. Calls about it are passed on; a stream is not.",
    cure: "Follow `Location`, with the token in a header. A page cannot follow with a WebSocket: it asks [`GET /v1/cluster?client=`](operate.md#brokers-of-a-cluster) first.",
    members: "`Location`",
};
pub(crate) static STORAGE: ProblemKind = ProblemKind {
    code: "storage",
    title: "not on disk",
    status: 503,
    cause: "The disk is full or accepts no data, so that nothing can be promised. The request may still take effect: when there is room again the broker writes what it has.",
    cure: "Make room on the disk. Removals are taken meanwhile, and make room: [operations](../operations.md#nearcastdisktakesnothing).",
    members: "`Retry-After: 1`",
};
pub(crate) static RECOVERING: ProblemKind = ProblemKind {
    code: "recovering",
    title: "the broker is starting",
    status: 503,
    cause: "The broker [starts](operate.md#starting), or has no keys of its issuer yet.",
    cure: "Wait until `/readyz` answers 200. `done` and `of` show the progress.",
    members: "`phase`, `done`, `of`; `Retry-After: 1`",
};
pub(crate) static STOPPING: ProblemKind = ProblemKind {
    code: "stopping",
    title: "the broker is stopping",
    status: 503,
    cause: "The broker [stops](operate.md#stopping) and takes no more requests.",
    cure: "Send it again when the broker is back; the clients do so by themselves.",
    members: "`Retry-After: 1`",
};

pub(crate) static PASSED_ON: WarningKind = WarningKind {
    text: "is passed on and means nothing to the broker",
    cause: "An event has a member that is nearly one that the broker knows, such as `ttl` for `ttl_s`. It goes to the subscribers like every foreign member.",
    cure: "Write the member that the warning names. If the member is meant for subscribers, put it into `properties`, or give it another name.",
};
pub(crate) static IGNORED: WarningKind = WarningKind {
    text: "is ignored",
    cause: "A position of a batch has a member that is nearly one that the broker knows, such as `accuracy` for `accuracy_m`. Other members of a position are ignored.",
    cure: "Write the member that the warning names.",
};
pub(crate) static NOWHERE: WarningKind = WarningKind {
    text: "the area follows the client, which has told no position",
    cause: "A subscription has an area of the form `{\"radius_m\"}`, and the client has no position. Nothing is inside such an area.",
    cure: "Tell where the client is: [`PUT /v1/clients/{client}/position`](positions.md), or a frame `move`. For a place that stays, add `center`.",
};
pub(crate) static UNPLACED: WarningKind = WarningKind {
    text: "the condition has 'me', and the client has told no position",
    cause: "A subscription has a condition with a function of `me`, and the client has no position. What depends on it is unknown.",
    cure: "Tell where the client is: [`PUT /v1/clients/{client}/position`](positions.md), or a frame `move`.",
};

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::model::error::ApiError;

    /// All kinds of problems, in the order of their status.
    const PROBLEMS: [&ProblemKind; 30] = [
        &ELSEWHERE,
        &MALFORMED_JSON,
        &INVALID_DOCUMENT,
        &BAD_REQUEST,
        &INTERRUPTED,
        &UNAUTHENTICATED,
        &TOKEN_EXPIRED,
        &FORBIDDEN,
        &FOREIGN_ORIGIN,
        &NOT_FOUND,
        &NO_PUSH,
        &NO_STREETS,
        &NO_ROUTE,
        &METHOD_NOT_ALLOWED,
        &TOO_SLOW,
        &LIMIT_REACHED,
        &TOO_LARGE,
        &UNSUPPORTED_MEDIA_TYPE,
        &FOREIGN_HOST,
        &INCONSISTENT,
        &WEBSOCKET_VERSION,
        &TOO_MANY_EVENTS,
        &TOO_MANY_MOVES,
        &TOO_COSTLY,
        &OVERLOADED,
        &INTERNAL,
        &LATE,
        &STORAGE,
        &RECOVERING,
        &STOPPING,
    ];

    const WARNINGS: [&WarningKind; 4] = [&PASSED_ON, &IGNORED, &NOWHERE, &UNPLACED];

    /// A refusal of each variant.
    fn refusals() -> Vec<ApiError> {
        let text = String::new;
        let (limit, setting) = (1, "limits.a");
        vec![
            ApiError::Malformed { detail: text(), line: 1, column: 1 },
            ApiError::Invalid(Vec::new()),
            ApiError::TooLarge { what: "a", limit, setting },
            ApiError::Limit { what: "a", limit, setting },
            ApiError::TooFast { limit, setting },
            ApiError::TooManyMoves { limit, setting },
            ApiError::TooCostly { limit, setting, debt: Duration::ZERO, costliest: [].into() },
            ApiError::Overloaded,
            ApiError::Storage,
            ApiError::Full,
            ApiError::NotStored(text()),
            ApiError::Stopping,
            ApiError::Recovering { phase: "a", done: 0, of: 1 },
            ApiError::TooSlow,
            ApiError::BelowRate,
            ApiError::Interrupted,
            ApiError::MediaType { found: text(), understood: "a" },
            ApiError::BadRequest(text()),
            ApiError::NotFound(text()),
            ApiError::MethodNotAllowed { asked: text(), possible: text() },
            ApiError::WebSocketVersion,
            ApiError::ForeignOrigin(text()),
            ApiError::ForeignHost(text()),
            ApiError::Unauthenticated { detail: text(), has_token: false },
            ApiError::TokenExpired,
            ApiError::Forbidden { detail: text(), scope: None },
            ApiError::Internal("a"),
            ApiError::NoKeys,
            ApiError::NoPush,
            ApiError::Unread { what: "a", limit, setting },
            ApiError::Inconsistent { check: "a".into(), links: [].into() },
            ApiError::NoStreets,
            ApiError::NoRoute(text()),
            ApiError::Late,
            ApiError::Elsewhere { url: text() },
        ]
    }

    /// Position of a variant in [`refusals`]. One that is not there does not compile.
    fn position(refusal: &ApiError) -> usize {
        match refusal {
            ApiError::Malformed { .. } => 0,
            ApiError::Invalid(_) => 1,
            ApiError::TooLarge { .. } => 2,
            ApiError::Limit { .. } => 3,
            ApiError::TooFast { .. } => 4,
            ApiError::TooManyMoves { .. } => 5,
            ApiError::TooCostly { .. } => 6,
            ApiError::Overloaded => 7,
            ApiError::Storage => 8,
            ApiError::Full => 9,
            ApiError::NotStored(_) => 10,
            ApiError::Stopping => 11,
            ApiError::Recovering { .. } => 12,
            ApiError::TooSlow => 13,
            ApiError::BelowRate => 14,
            ApiError::Interrupted => 15,
            ApiError::MediaType { .. } => 16,
            ApiError::BadRequest(_) => 17,
            ApiError::NotFound(_) => 18,
            ApiError::MethodNotAllowed { .. } => 19,
            ApiError::WebSocketVersion => 20,
            ApiError::ForeignOrigin(_) => 21,
            ApiError::ForeignHost(_) => 22,
            ApiError::Unauthenticated { .. } => 23,
            ApiError::TokenExpired => 24,
            ApiError::Forbidden { .. } => 25,
            ApiError::Internal(_) => 26,
            ApiError::NoKeys => 27,
            ApiError::NoPush => 28,
            ApiError::Unread { .. } => 29,
            ApiError::Inconsistent { .. } => 30,
            ApiError::NoStreets => 31,
            ApiError::NoRoute(_) => 32,
            ApiError::Late => 33,
            ApiError::Elsewhere { .. } => 34,
        }
    }

    #[test]
    fn the_dictionary_has_what_the_broker_answers_and_nothing_else() {
        let refusals = refusals();
        assert!(refusals.iter().map(position).eq(0..refusals.len()), "each variant, in this order");
        let mut answered: Vec<String> =
            refusals.iter().map(|refusal| refusal.problem().code().to_owned()).collect();
        let mut listed = PROBLEMS.map(|kind| kind.code);
        answered.sort_unstable();
        answered.dedup();
        listed.sort_unstable();
        assert_eq!(answered, listed);
        assert!(PROBLEMS.iter().map(|kind| kind.status).is_sorted());
        for refusal in refusals {
            let (problem, code) = (refusal.problem(), refusal.code());
            let kind = PROBLEMS.iter().find(|kind| kind.code == code).expect(code);
            assert_eq!((problem.title.as_str(), problem.status), (kind.title, kind.status));
        }
    }

    const BEGINNING: &str = r#"# Problems and warnings, one by one

What each [problem](limits.md) and each warning means, and what to do. The `type` of a problem is `urn:nearcast:problem:` and its code:

```sh
curl -s --json '{"type": "Feature", "geometry": {"type": "Point", "coordinates": [34.05, -118.24]}}' localhost:7070/v1/events |
    jq -r '.type, .errors[0].detail'
```

```text
urn:nearcast:problem:invalid-document
latitude -118.24 is outside of -90 to 90 (longitude comes first: did you mean [-118.24, 34.05]?)
```

| code | status | title |
| --- | --- | --- |
"#;

    fn page() -> String {
        let mut page = "<!-- Generated by UPDATE_GOLDEN=1 cargo test -p broker --lib problems; edit broker/src/model/problems.rs instead. -->\n\n".to_owned();
        page += BEGINNING;
        for ProblemKind { code, title, status, .. } in PROBLEMS {
            writeln!(page, "| [`{code}`](#{code}) | {status} | {title} |").unwrap();
        }
        for ProblemKind { code, status, cause, cure, members, .. } in PROBLEMS {
            write!(page, "\n## {code}\n\n{status}. {cause}\n\n**What to do:** {cure}\n").unwrap();
            if !members.is_empty() {
                write!(page, "\n**Besides:** {members}.\n").unwrap();
            }
        }
        page += "\n## Warnings\n\nA request with a warning is carried out: the answer has `warnings`, each with the `pointer` of a place and a `detail`.\n";
        for WarningKind { text, cause, cure } in WARNINGS {
            write!(page, "\n**\"{text}\"** {cause}\n\n**What to do:** {cure}\n").unwrap();
        }
        page
    }

    #[test]
    fn the_page_of_problems_is_made_from_the_dictionary() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/protocol/problems.md");
        if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
            std::fs::write(&path, page()).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap();
        assert!(found == page(), "{} is not up to date (UPDATE_GOLDEN=1 writes it anew)", path.display());
    }
}
