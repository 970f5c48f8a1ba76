//! Draws a plot as SVG inside a page, whose style sheet has the colours: what is drawn in one of [`COLOURS`] is another by night.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::OnceLock;

use anyhow::anyhow;
use plotters::prelude::*;
use plotters::style::FontStyle;
use quick_xml::escape::escape;

use super::axis::{Axis, Scale, Unit};
use super::table::clean;

/// The page's own font is what is shown; this one only measures.
const FONT: &str = "sans-serif";
/// How wide and high a plot is, in the page's pixels.
const SIZE: (u32, u32) = (480, 290);
/// The library places in whole units: so many to a pixel, for lines without steps.
const FINE: u32 = 4;
/// Points of a line at most, two for each place across: more would not be seen.
const POINTS_MAX: usize = 800;
/// Colours of curves, in this order: the palette of Okabe and Ito, which the colour-blind see too. `page.css` has each of them for
/// day and night.
pub(super) const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
];
/// Texts and axes, the grid, and what is shaded.
const INK: RGBColor = RGBColor(40, 40, 40);
const GRID: RGBColor = RGBColor(222, 222, 222);
const SHADE: RGBColor = RGBColor(240, 240, 240);

/// Axes with lines.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    /// Above it.
    pub(super) title: String,
    pub(super) x: Side,
    pub(super) y: Side,
    /// A part that is something else, such as the warm-up.
    pub(super) shades: Vec<Range<f64>>,
    /// At most as many as there are colours.
    pub(super) lines: Vec<Line>,
}

/// What an axis shows.
#[derive(Clone, Debug)]
pub(super) struct Side {
    /// With its unit, where labels do not have it.
    pub(super) name: String,
    pub(super) scale: Scale,
    pub(super) unit: Unit,
}

/// A line.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// In the legend.
    pub(super) name: String,
    /// Points, by x; none where nothing is known.
    pub(super) points: Vec<(f64, Option<f64>)>,
    pub(super) mark: Mark,
}

/// How the points of a line are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Joined.
    Joined,
    /// Joined, each with a dot.
    Dots,
    /// Each by itself.
    Alone,
}

impl Plot {
    /// A figure with its legend; an empty text where there is nothing to see.
    pub(super) fn to_html(&self) -> anyhow::Result<String> {
        if self.points().next().is_none() {
            return Ok(String::new());
        }
        let title = clean(&self.title);
        let mut html =
            format!("<figure><figcaption>{}</figcaption>\n<ul class=\"legend\">", escape(title.as_str()));
        for (line, colour) in self.lines.iter().zip(COLOURS) {
            let name = clean(&line.name);
            let RGBColor(red, green, blue) = colour;
            let _ = write!(
                html,
                "<li><svg viewBox=\"0 0 18 10\" aria-hidden=\"true\"><path d=\"M0 5h18\" stroke=\"#{red:02X}{green:02X}{blue:02X}\" \
                 stroke-width=\"3\"/></svg>{}</li>",
                escape(name.as_str())
            );
        }
        html.push_str("</ul>\n");
        html.push_str(&self.svg()?);
        html.push_str("</figure>\n");
        Ok(html)
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        let points = self.lines.iter().flat_map(|line| &line.points);
        points.filter_map(|(x, y)| y.filter(|y| y.is_finite()).map(|y| (*x, y)))
    }

    fn axis(&self, side: &Side, ticks_max: u32, pick: fn((f64, f64)) -> f64) -> Axis {
        // On a logarithmic axis nothing is at zero.
        let shown = |value: &f64| side.scale == Scale::Linear || *value > 0.0;
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in self.points().map(pick).filter(shown) {
            (low, high) = (low.min(value), high.max(value));
        }
        let ends = if low <= high { low..high } else { 1.0..10.0 };
        Axis::around(ends, side.scale, side.unit, ticks_max)
    }

    fn svg(&self) -> anyhow::Result<String> {
        register_font()?;
        let (x, y) = (self.axis(&self.x, 6, |point| point.0), self.axis(&self.y, 6, |point| point.1));
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, (SIZE.0 * FINE, SIZE.1 * FINE)).into_drawing_area();
            let font = |pixels: u32| (FONT, pixels * FINE).into_font().color(&INK);
            let mut chart = ChartBuilder::on(&root)
                .margin(6 * FINE)
                .margin_top(12 * FINE)
                .margin_right(30 * FINE)
                .x_label_area_size(44 * FINE)
                .y_label_area_size(70 * FINE)
                .build_cartesian_2d(x.clone(), y.clone())?;
            for shade in &self.shades {
                let range = plotters::coord::ranged1d::Ranged::range(&y);
                let corners = [(x.place(shade.start), range.start), (x.place(shade.end), range.end)];
                chart.plotting_area().draw(&Rectangle::new(corners, SHADE.filled()))?;
            }
            chart
                .configure_mesh()
                .bold_line_style(GRID.stroke_width(FINE))
                .light_line_style(TRANSPARENT)
                .set_all_tick_mark_size(5 * FINE)
                .axis_style(INK.stroke_width(FINE))
                .label_style(font(15))
                .axis_desc_style(font(15))
                .x_desc(clean(&self.x.name))
                .y_desc(clean(&self.y.name))
                .draw()?;
            for (line, colour) in self.lines.iter().zip(COLOURS) {
                line.draw(chart.plotting_area(), colour, &x, &y)?;
            }
            root.present().map_err(|error| anyhow!("{error}"))?;
        }
        Ok(svg)
    }
}

impl Line {
    fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Cartesian2d<Axis, Axis>>,
        colour: RGBColor,
        x: &Axis,
        y: &Axis,
    ) -> anyhow::Result<()>
    where
        DB::ErrorType: 'static,
    {
        let points = thinned(&self.points);
        for part in points.split(|(_, value)| value.is_none()) {
            let part: Vec<(f64, f64)> =
                part.iter().filter_map(|(at, value)| Some((x.place(*at), y.place((*value)?)))).collect();
            if self.mark != Mark::Joined || part.len() == 1 {
                for point in &part {
                    area.draw(&Circle::new(*point, 4 * FINE, colour.filled()))?;
                }
            }
            if self.mark != Mark::Alone && part.len() > 1 {
                area.draw(&PathElement::new(part, colour.stroke_width(2 * FINE)))?;
            }
        }
        Ok(())
    }
}

/// Not more points than can be seen: of each run of them the least and the largest, so that every peak stays.
fn thinned(points: &[(f64, Option<f64>)]) -> Vec<(f64, Option<f64>)> {
    let run = points.len().div_ceil(POINTS_MAX / 2).max(1);
    if points.len() <= POINTS_MAX {
        return points.to_vec();
    }
    let ends = |run: &[(f64, Option<f64>)]| {
        let by_value = |one: &&(f64, Option<f64>), other: &&(f64, Option<f64>)| {
            one.1.unwrap_or(f64::NAN).total_cmp(&other.1.unwrap_or(f64::NAN))
        };
        let known = || run.iter().filter(|(_, value)| value.is_some());
        let (Some(least), Some(largest)) = (known().min_by(by_value), known().max_by(by_value)) else {
            return run.first().copied().into_iter().collect::<Vec<_>>();
        };
        if least.0 <= largest.0 { vec![*least, *largest] } else { vec![*largest, *least] }
    };
    points.chunks(run).flat_map(ends).collect()
}

fn register_font() -> anyhow::Result<()> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let registered = REGISTERED.get_or_init(|| {
        plotters::style::register_font(FONT, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT).is_ok()
    });
    anyhow::ensure!(registered, "the font that comes along cannot be read");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_outlive_thinning_and_holes_too() {
        let points: Vec<(f64, Option<f64>)> = (0..10_000)
            .map(|step| {
                (
                    f64::from(step),
                    (!(3_000..=4_000).contains(&step)).then_some(if step == 777 { 9.0 } else { 1.0 }),
                )
            })
            .collect();
        let thinned = thinned(&points);
        assert!(thinned.len() <= POINTS_MAX, "{}", thinned.len());
        assert!(thinned.contains(&(777.0, Some(9.0))));
        assert!(thinned.iter().any(|(at, value)| (3_100.0..3_900.0).contains(at) && value.is_none()));
        assert!(thinned.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    }

    #[test]
    fn the_style_sheet_has_every_colour_twice() {
        let style = include_str!("page.css");
        for RGBColor(red, green, blue) in COLOURS.into_iter().chain([INK, GRID, SHADE]) {
            let name = format!("=\"#{red:02X}{green:02X}{blue:02X}\"]");
            assert!(style.contains(&name), "{name}");
        }
    }
}
