//! `nearcast sub`.

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Args;
use futures_util::{StreamExt as _, stream};
use nearcast_client::{
    Acknowledge, Checkpoint, Connection, Coordinates, Error, Fix, Follow, Message, Messages, Session,
    Subscription, Unreadable, documents,
};
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;

use crate::access::{Access, in_words, passes, told};
use crate::input::positions::{self, Placed};
use crate::input::{Entry, Source};
use crate::interest::Interest;
use crate::print::{self, Lines, Out, Palette, plain, tell};
use crate::{or_stopped, usage, values};

const NAMELESS: &str = "who comes back needs a name: --client";

/// Arguments of `nearcast sub`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  nearcast sub --around 500 --at 9.19,45.464 --where \"type = 'accident' AND severity >= 2\"
  nearcast sub --circle 9.19,45.464,2000 --on enter,exit
  gps | nearcast sub --client ann --around 300 --follow -
  nearcast sub --client ann --id alarms --where \"type = 'fire'\" --durable --json
  nearcast sub --client ann        (what ann has subscribed to already)
  nearcast sub --client ann --id alarms --remove

Without --durable the subscription ends with the program. Events go to standard output, a line each; all else to standard error.")]
pub struct SubArguments {
    /// The client that subscribes; else the subject of the token, or a name for this once
    #[arg(long, value_name = "NAME", env = "NEARCAST_CLIENT")]
    client: Option<String>,
    /// The client's name for the subscription, so that it can be found again; else a name for this once
    #[arg(long, value_name = "NAME")]
    id: Option<String>,
    /// Keep what matches while nobody listens, until it was shown; needs a client of one's own
    #[arg(long)]
    durable: bool,
    /// Go on where this file says, and keep there how far it came
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// End the subscription of this --id, in place of listening
    #[arg(long, requires = "id", conflicts_with_all = ["durable", "resume", "at", "follow"])]
    remove: bool,
    /// End after so many events
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = values::time)]
    duration: Option<Duration>,
    /// Show frames as JSON, a line each
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    interest: Interest,
    #[command(flatten)]
    place: PlaceFlags,
    #[command(flatten)]
    access: Access,
}

/// Where the client is.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Where the client is")]
struct PlaceFlags {
    /// It stays there
    #[arg(long, value_name = "LON,LAT", value_parser = values::place, allow_hyphen_values = true)]
    at: Option<Coordinates>,
    /// It moves as this file says, a position a line; - is standard input
    #[arg(long, value_name = "FILE")]
    follow: Option<PathBuf>,
    /// Tell a position when it is so far from the last one that was told
    #[arg(long, value_name = "METRES", value_parser = values::metres, allow_negative_numbers = true, default_value = "25", requires = "follow")]
    min_distance: f64,
    /// But never sooner than this after it
    #[arg(long, value_name = "TIME", value_parser = values::time, default_value = "1s", requires = "follow")]
    min_interval: Duration,
    /// And at the latest after this
    #[arg(long, value_name = "TIME", value_parser = values::time, default_value = "1m", requires = "follow")]
    max_interval: Duration,
    /// Coordinates are metres: the broker's world is planar
    #[arg(long)]
    planar: bool,
}

impl PlaceFlags {
    /// Whether it is not said where the client is.
    fn is_silent(&self) -> bool {
        self.at.is_none() && self.follow.is_none()
    }

    fn follow(&self) -> Follow {
        let follow = Follow::default()
            .min_distance_m(self.min_distance)
            .min_interval(self.min_interval)
            .max_interval(self.max_interval);
        if self.planar { follow.planar() } else { follow }
    }
}

pub(crate) async fn run(arguments: SubArguments, stop: CancellationToken) -> anyhow::Result<ExitCode> {
    let broker = arguments.access.broker()?;
    let named = arguments.access.client(arguments.client.clone())?;
    let is_stranger = named.is_none();
    if is_stranger && (arguments.durable || arguments.resume.is_some() || arguments.remove) {
        return Err(usage(NAMELESS));
    }
    let follows_stdin = arguments.place.follow.as_ref().is_some_and(|path| path.as_os_str() == "-");
    if follows_stdin && arguments.interest.reads_stdin() {
        return Err(usage("standard input can be read for one thing only"));
    }
    let subscription = or_stopped(&stop, arguments.interest.subscription()).await?;
    if subscription.is_none() && !arguments.remove {
        if is_stranger {
            return Err(usage(
                "what is looked for? An area or a condition: --around, --circle, --where, … or --everywhere",
            ));
        }
        if arguments.durable || arguments.id.is_some() {
            return Err(usage(
                "a subscription needs an area or a condition: --around, --circle, --where, … or --everywhere",
            ));
        }
    }
    let client = named.unwrap_or_else(|| format!("cli-{:08x}", rand::random::<u32>()));
    if let (true, Some(id)) = (arguments.remove, &arguments.id) {
        let removed =
            async { broker.unsubscribe(&client, id).await.map_err(|error| arguments.access.told(&error)) };
        return or_stopped(&stop, removed).await.map(|()| ExitCode::SUCCESS);
    }
    let subscription = subscription.map(|(id, subscription)| {
        // What ends with this program is nobody else's, whatever else the client runs.
        let id = arguments.id.clone().or(id).unwrap_or_else(|| {
            if arguments.durable { "cli".to_owned() } else { format!("cli-{:08x}", rand::random::<u32>()) }
        });
        (id, if arguments.durable { subscription.durable() } else { subscription })
    });
    if let Some((_, subscription)) = &subscription
        && is_stranger
        && documents::Subscription::from(subscription.clone()).durable
    {
        return Err(usage(NAMELESS));
    }
    let followed = arguments.place.follow.as_deref().map(Source::open).transpose()?;
    let bookmark = Bookmark::open(arguments.resume.clone())?;
    let connecting = async {
        // What is wrong is reported now, and not tried again and again.
        match broker.subscriptions(&client).await {
            Err(error) if !passes(&error) => return Err(arguments.access.told(&error)),
            Err(_) => {}
            Ok(there) => look_at(&client, &there, subscription.as_ref())?,
        }
        let connect = arguments.access.session(&client)?.acknowledge(Acknowledge::Manual);
        connect.resume(bookmark.reached.clone()).await.map_err(|error| arguments.access.told(&error))
    };
    let (session, messages) = match arguments.duration {
        None => or_stopped(&stop, connecting).await?,
        Some(limit) => tokio::time::timeout(limit, or_stopped(&stop, connecting))
            .await
            .map_err(|_| anyhow!("{}: it did not answer within {limit:?}", arguments.access.url()))??,
    };
    if arguments.interest.follows_client() && arguments.place.is_silent() {
        tell(&plain(&format!(
            "nearcast: the area is around {client}, who has to be somewhere: --at, --follow, or nearcast move"
        )));
    }
    let subscription_id = subscription.as_ref().map(|(id, _)| id.clone());
    let listener = Listener {
        arguments: &arguments,
        session: &session,
        subscription_id,
        here: Cell::default(),
        bookmark,
    };
    let listened = listener.listen(messages, subscription, followed, &stop).await;
    session.close().await;
    if is_stranger {
        // Nobody comes back by this name. What is left of it if this fails is a position.
        let _ = tokio::time::timeout(Duration::from_secs(2), broker.forget(&client)).await;
    }
    listened.map(|()| ExitCode::SUCCESS)
}

/// Tells what a subscription takes the place of, unless that would be lost by mistake, and where nothing can come.
fn look_at(
    client: &str,
    there: &[documents::Subscription],
    wanted: Option<&(String, Subscription)>,
) -> anyhow::Result<()> {
    let Some((id, wanted)) = wanted else {
        if there.is_empty() {
            let text = format!("nearcast: {client} has no subscriptions: nothing comes until there is one");
            tell(&plain(&text));
        }
        return Ok(());
    };
    let Some(before) = there.iter().find(|one| one.id.as_ref() == Some(id)) else { return Ok(()) };
    if before.durable && !documents::Subscription::from(wanted.clone()).durable {
        return Err(usage(format!(
            "{id} is there and durable, and would end with this program: --durable changes it, --remove ends it, \
             another --id leaves it"
        )));
    }
    tell(&plain(&format!("nearcast: {id} was there, and is replaced")));
    Ok(())
}

/// Shows what comes.
struct Listener<'a> {
    arguments: &'a SubArguments,
    session: &'a Session,
    subscription_id: Option<String>,
    /// Where the client is, as far as this program knows.
    here: Cell<Option<Coordinates>>,
    bookmark: Bookmark,
}

impl Listener<'_> {
    async fn listen(
        self,
        messages: Messages,
        subscription: Option<(String, Subscription)>,
        followed: Option<Source>,
        stop: &CancellationToken,
    ) -> anyhow::Result<()> {
        let watching = tokio::spawn(watch(self.session.clone()));
        let shown = stop.run_until_cancelled(async {
            self.begin(subscription).await?;
            // Only now, for what is inside of a new subscription already does not enter.
            let following = async {
                match followed {
                    Some(source) => self.follow(source).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                shown = self.show(messages) => shown,
                never = following => match never {},
            }
        });
        let shown = shown.await.unwrap_or(Ok(()));
        watching.abort();
        shown
    }

    async fn begin(&self, subscription: Option<(String, Subscription)>) -> anyhow::Result<()> {
        if let Some(at) = self.arguments.place.at {
            self.here.set(Some(at));
            self.session.move_confirmed(at).await.map_err(|error| told(&error))?;
        }
        if let Some((id, subscription)) = subscription {
            self.session.subscribe(id, subscription).await.map_err(|error| told(&error))?;
        }
        tell(&plain(&format!("nearcast: listening as {}", self.session.client())));
        Ok(())
    }

    /// Follows positions until they end; then the client stays where it is.
    async fn follow(&self, source: Source) -> Infallible {
        let name = source.name.clone();
        let format = source.format;
        let entries = source.feed(move |reader, feed| positions::read_as(format, reader, feed, Placed::fix));
        let fixes = stream::unfold(entries, |mut entries| async {
            let fix = next_fix(&mut entries, &name).await?;
            Some((fix, entries))
        });
        let fixes = fixes.inspect(|fix| self.here.set(Some(fix.coordinates)));
        // Where the session has ended its messages say so.
        let _ = self.session.follow(fixes, self.arguments.place.follow()).await;
        std::future::pending().await
    }

    /// Shows messages until there have been enough, or the session ends.
    async fn show(&self, messages: Messages) -> anyhow::Result<()> {
        let end = async {
            match self.arguments.duration {
                Some(duration) => tokio::time::sleep(duration).await,
                None => std::future::pending().await,
            }
        };
        let mut end = std::pin::pin!(end);
        let mut messages = messages.ready_chunks(CHUNK);
        let mut out = Out::new();
        let mut rest = self.arguments.count.unwrap_or(u64::MAX);
        while rest > 0 {
            let chunk = tokio::select! {
                biased;
                () = &mut end => return Ok(()),
                chunk = messages.next() => chunk,
            };
            let Some(chunk) = chunk else { return Ok(()) };
            let (text, reached, broken) = self.render(chunk, &mut rest);
            tokio::select! {
                written = out.write(&text) => written?,
                // Who reads may have stopped reading. What it has not taken is not acknowledged.
                () = &mut end => return Ok(()),
            }
            if let Some(reached) = reached {
                self.bookmark.keep(&reached)?;
                self.session.ack(reached);
            }
            if let Some(error) = broken {
                return Err(told(&error));
            }
        }
        Ok(())
    }

    /// Messages as text, how far they come, and what has ended the session.
    fn render(
        &self,
        chunk: Vec<Result<Message, Error>>,
        rest: &mut u64,
    ) -> (String, Option<Checkpoint>, Option<Error>) {
        let lines = Lines {
            palette: Palette::of_stdout(),
            subscription: self.subscription_id.as_deref(),
            planar: self.arguments.place.planar,
        };
        let here = self.here.get();
        let mut text = String::new();
        let mut reached = None;
        for message in chunk {
            if *rest == 0 {
                break;
            }
            let message = match message {
                Ok(message) => message,
                Err(error) => return (text, reached, Some(error)),
            };
            reached = Some(message.checkpoint());
            if self.arguments.json {
                text.push_str(&print::json_line(&message));
            }
            match &message {
                Message::Event(event) => {
                    *rest -= 1;
                    if !self.arguments.json {
                        text.push_str(&lines.event(event, here));
                    }
                }
                Message::Gap(gap) if !self.arguments.json => {
                    print::gap(gap).inspect(|gap| tell(&plain(&format!("nearcast: {gap}"))));
                }
                Message::Unreadable(Unreadable { feature, fault, .. }) => {
                    tell(&plain(&format!("nearcast: an event cannot be read: {fault}: {feature}")));
                }
                Message::Gap(_) | _ => {}
            }
        }
        (text, reached, None)
    }
}

/// Messages that are written together, at most.
const CHUNK: usize = 256;

/// The next fix that can be read; a line that is none is reported.
async fn next_fix(entries: &mut Receiver<Entry<Fix>>, name: &str) -> Option<Fix> {
    loop {
        let entry = entries.recv().await?;
        match entry.content {
            Ok(fix) => return Some(fix),
            Err(fault) => tell(&plain(&format!("nearcast: {} of {name}: {}", entry.origin, fault.why))),
        }
    }
}

/// Tells what becomes of the connection.
async fn watch(session: Session) {
    let mut changes = session.connections();
    let mut is_lost = false;
    while let Some(change) = changes.next().await {
        let text = match change {
            Connection::Ready { resumed, .. } => {
                is_lost = false;
                if resumed {
                    "connected again".to_owned()
                } else {
                    "connected again, in another session".to_owned()
                }
            }
            // It is tried again and again, and told once.
            Connection::Lost { error, .. } if !std::mem::replace(&mut is_lost, true) => {
                format!("the connection is lost: {}; it is tried again", in_words(&error))
            }
            Connection::Refused { error } => format!("refused: {}", in_words(&error)),
            Connection::Warned { warnings } => {
                let told = warnings.iter().map(|warning| format!("{}: {}", warning.pointer, warning.detail));
                format!("the broker warns of {}", told.collect::<Vec<_>>().join("; "))
            }
            Connection::Connecting | Connection::Lost { .. } | Connection::Closed { .. } | _ => continue,
        };
        tell(&plain(&format!("nearcast: {text}")));
    }
}

/// How far a client came, in a file.
struct Bookmark {
    path: Option<PathBuf>,
    reached: Option<Checkpoint>,
}

impl Bookmark {
    fn open(path: Option<PathBuf>) -> anyhow::Result<Self> {
        let Some(file) = &path else { return Ok(Self { path, reached: None }) };
        let name = file.display();
        let reached = match std::fs::read_to_string(file) {
            Ok(text) => {
                Some(text.trim().parse().map_err(|error| told(&error)).with_context(|| name.to_string())?)
            }
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => None,
            Err(fault) => return Err(fault).with_context(|| format!("cannot read {name}")),
        };
        // Told now, and not at the first event.
        let beside = beside(file);
        let tried = std::fs::write(&beside, "").and_then(|()| std::fs::remove_file(&beside));
        tried.with_context(|| format!("cannot write {name}"))?;
        Ok(Self { path, reached })
    }

    /// Puts it there as a whole, whenever the program may end.
    fn keep(&self, reached: &Checkpoint) -> anyhow::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let put = |path: &Path| {
            let beside = beside(path);
            std::fs::write(&beside, format!("{reached}\n"))?;
            std::fs::rename(beside, path)
        };
        put(path).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Path at which a file is written before it takes the place of the other.
fn beside(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    beside.into()
}
