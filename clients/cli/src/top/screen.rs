//! A view on a terminal.

use std::io;

use ratatui::crossterm::event::{self, KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table, Wrap};
use ratatui::{DefaultTerminal, Frame};
use tokio::sync::mpsc;

use super::view::{CLIENT_COLUMNS, OWN_COLUMNS, Own, View, client_row, level, own_row, rate, seconds, title};
use crate::print::count;

/// The terminal while it is ours. However this ends, it is given back as it was.
pub(super) struct Screen {
    terminal: DefaultTerminal,
    wishes: mpsc::Receiver<Wish>,
}

/// A wish of somebody at the terminal.
enum Wish {
    Redraw,
    End,
}

impl Screen {
    /// Takes the terminal. A panic gives it back as well.
    pub(super) fn open() -> io::Result<Self> {
        let terminal = ratatui::try_init()?;
        let (wish, wishes) = mpsc::channel(16);
        // Ends when nobody listens; it is not waited for, for it waits for keys.
        std::thread::spawn(move || while read(&wish).is_some() {});
        Ok(Self { terminal, wishes })
    }

    /// Shows a view until there is something newer to be shown; `None` when somebody has seen enough.
    pub(super) async fn show_until<T>(
        &mut self,
        view: &View,
        newer: impl Future<Output = T>,
    ) -> io::Result<Option<T>> {
        let mut newer = std::pin::pin!(newer);
        loop {
            self.terminal.draw(|frame| draw(frame, view))?;
            tokio::select! {
                newer = &mut newer => return Ok(Some(newer)),
                wish = self.wishes.recv() => if !matches!(wish, Some(Wish::Redraw)) { return Ok(None) },
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Waits for a key, and hands on what it means.
fn read(wish: &mpsc::Sender<Wish>) -> Option<()> {
    let happened = event::read().ok()?;
    if happened.as_key_press_event().is_some_and(ends) {
        wish.blocking_send(Wish::End).ok()
    } else if happened.is_resize() {
        wish.blocking_send(Wish::Redraw).ok()
    } else {
        Some(())
    }
}

/// The terminal hands Ctrl-C on, and sends no signal for it.
fn ends(key: KeyEvent) -> bool {
    matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
        || key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
}

const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const HEAD: Style = Style::new().add_modifier(Modifier::BOLD);

fn draw(frame: &mut Frame, view: &View) {
    let notes = u16::from(view.note.is_some()) * 2;
    let rows = u16::try_from(view.levels.len()).unwrap_or_default();
    let tables = if rows > 0 { rows + 3 } else { 0 };
    let [head, note, figures, clients, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(notes),
        Constraint::Length(tables),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let state = Style::new().fg(if view.is_ready { Color::Green } else { Color::Red });
    let lines = vec![Line::styled(view.headline(), HEAD), Line::styled(view.state(), state)];
    frame.render_widget(Paragraph::new(lines), head);
    if let Some(text) = &view.note {
        frame.render_widget(Paragraph::new(text.as_str()).wrap(Wrap { trim: true }), note);
    }
    frame.render_widget(Paragraph::new(Line::styled("q ends", DIM)), foot);
    if tables > 0 {
        let [rates, levels, latencies] =
            Layout::horizontal([Constraint::Fill(4), Constraint::Fill(3), Constraint::Fill(4)])
                .areas(figures);
        let rows = view.rates.iter().map(|row| [title(row.name), rate(row.per_second), count(row.total)]);
        table(frame, rates, "rates", ["", "/s", "total"], rows.collect());
        let rows = view.levels.iter().map(|(name, value)| [title(name), level(name, *value)]);
        table(frame, levels, "now", ["", ""], rows.collect());
        let rows = view.latencies.iter().map(|(name, spread)| {
            let shown = |of: Option<f64>| of.map_or_else(|| "-".to_owned(), seconds);
            [title(name), shown(spread.map(|spread| spread.p50)), shown(spread.map(|spread| spread.p99))]
        });
        table(frame, latencies, "latencies", ["", "p50", "p99"], rows.collect());
    }
    if let Some(of) = &view.clients {
        table(
            frame,
            clients,
            "clients, furthest behind first",
            CLIENT_COLUMNS,
            of.iter().map(client_row).collect(),
        );
    }
    if let Some(Own { client, subscriptions }) = &view.own {
        let name = client
            .as_ref()
            .map_or_else(String::new, |client| format!("subscriptions of {}", crate::print::plain(client)));
        table(frame, clients, &name, OWN_COLUMNS, subscriptions.iter().map(own_row).collect());
    }
}

/// Rows in a frame with a name, numbers to the right.
fn table<const COLUMNS: usize>(
    frame: &mut Frame,
    area: Rect,
    name: &str,
    head: [&str; COLUMNS],
    rows: Vec<[String; COLUMNS]>,
) {
    let row = |cells: [String; COLUMNS]| {
        let mut column = 0;
        Row::new(cells.map(|cell| {
            column += 1;
            let alignment = if column == 1 { Alignment::Left } else { Alignment::Right };
            Cell::new(Line::raw(cell).alignment(alignment))
        }))
    };
    // Numbers are shown whole, or they would say something else; where there is too little room, names are cut.
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count()).chain([head[column].chars().count()]);
        Constraint::Length(u16::try_from(cells.max().unwrap_or_default()).unwrap_or(u16::MAX))
    };
    let widths: Vec<_> =
        (0..COLUMNS).map(|column| if column == 0 { Constraint::Fill(1) } else { width(column) }).collect();
    let table = Table::new(rows.into_iter().map(row), widths)
        .header(row(head.map(str::to_owned)).style(DIM))
        .block(Block::bordered().title(name.to_owned()).border_style(DIM));
    frame.render_widget(table, area);
}
