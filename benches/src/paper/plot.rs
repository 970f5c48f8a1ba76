//! Draws figures of a few panels as SVG and PNG; the same picture on every machine, for the font comes along.
//!
//! Curves are told apart by colour (the palette of Okabe and Ito, which the colour-blind see too), by marker and by
//! dashes.

use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, anyhow};
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::FontStyle;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Axis;

/// How an SVG names the font: its viewer may have another, which these are close to.
const FONT: &str = "Ubuntu, Helvetica, Arial, sans-serif";
/// Pixels of a panel in an SVG.
const PANEL: (u32, u32) = (560, 400);
/// Height of the title and of a line of the legend.
const LINE: u32 = 36;
/// A PNG has so many pixels for one of an SVG's.
const PNG_SCALE: u32 = 2;
/// Nearly black.
const INK: RGBColor = RGBColor(40, 40, 40);
/// Lines of the grid.
const GRID: RGBColor = RGBColor(222, 222, 222);

/// How a curve looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Colour of the line and of its markers.
    pub colour: RGBColor,
    /// Marker at each point.
    pub marker: Marker,
    /// Pixels of line and of gap; none is a whole line.
    pub dashes: Option<(u32, u32)>,
}

/// What a point looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A disc.
    Disc,
    /// A square.
    Square,
    /// A triangle that stands.
    Triangle,
    /// A square on its tip.
    Diamond,
    /// A ring.
    Ring,
    /// Two strokes.
    Cross,
}

/// A curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// In the legend.
    pub label: String,
    /// How it looks.
    pub look: Look,
    /// Points, ascending.
    pub points: Vec<CurvePoint>,
}

/// A point with its spread.
#[derive(Clone, Copy, Debug)]
pub struct CurvePoint {
    /// Along the axis.
    pub x: f64,
    /// The median.
    pub y: f64,
    /// The least and the largest.
    pub spread: (f64, f64),
}

/// Axes with curves.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// Its curves.
    pub curves: Vec<Curve>,
}

/// Panels that share their axes and their legend.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Above all panels.
    pub title: String,
    /// Below each panel, unit included.
    pub x_label: String,
    /// Beside each panel, unit included.
    pub y_label: String,
    /// Whether y grows by factors.
    pub y_log: bool,
    /// Two to a row.
    pub panels: Vec<Panel>,
}

/// Writes `stem.svg` and `stem.png` into a folder.
///
/// # Errors
/// When a file cannot be written.
pub fn write(figure: &Figure, folder: &Path, stem: &str) -> anyhow::Result<()> {
    register_font()?;
    let (width, height) = figure.size();
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        draw(figure, &root, 1)?;
        root.present().map_err(|error| anyhow!("{error}"))?;
    }
    let path = folder.join(stem).with_extension("svg");
    std::fs::write(&path, svg).with_context(|| format!("writing {}", path.display()))?;

    let (width, height) = (width * PNG_SCALE, height * PNG_SCALE);
    let mut pixels = vec![0; width as usize * height as usize * 3];
    {
        let root = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
        draw(figure, &root, PNG_SCALE)?;
        root.present().map_err(|error| anyhow!("{error}"))?;
    }
    let path = folder.join(stem).with_extension("png");
    let file = std::fs::File::create(&path).with_context(|| format!("writing {}", path.display()))?;
    let mut encoder = png::Encoder::new(std::io::BufWriter::new(file), width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::Balanced);
    encoder.write_header()?.write_image_data(&pixels)?;
    Ok(())
}

fn register_font() -> anyhow::Result<()> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let registered = REGISTERED.get_or_init(|| {
        plotters::style::register_font(FONT, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT).is_ok()
    });
    anyhow::ensure!(registered, "the font that comes along cannot be read");
    Ok(())
}

impl Figure {
    fn columns(&self) -> u32 {
        if self.panels.len() > 1 { 2 } else { 1 }
    }

    fn rows(&self) -> u32 {
        u32::try_from(self.panels.len()).unwrap_or(1).div_ceil(self.columns())
    }

    fn size(&self) -> (u32, u32) {
        let legend = LINE * self.legend_lines();
        (PANEL.0 * self.columns(), PANEL.1 * self.rows() + LINE + legend)
    }

    /// Every curve once, in the order in which they first come.
    fn legend(&self) -> Vec<&Curve> {
        let mut legend: Vec<&Curve> = Vec::new();
        for curve in self.panels.iter().flat_map(|panel| &panel.curves) {
            if legend.iter().all(|known| known.label != curve.label) {
                legend.push(curve);
            }
        }
        legend
    }

    fn legend_columns(&self) -> u32 {
        self.columns() * 2
    }

    fn legend_lines(&self) -> u32 {
        u32::try_from(self.legend().len()).unwrap_or(1).div_ceil(self.legend_columns())
    }

    fn points(&self) -> impl Iterator<Item = &CurvePoint> {
        self.panels.iter().flat_map(|panel| &panel.curves).flat_map(|curve| &curve.points)
    }

    /// Where y is on its axis.
    fn scaled(&self, y: f64) -> f64 {
        if self.y_log { y.max(f64::MIN_POSITIVE).log10() } else { y }
    }

    /// The axis that all panels share.
    fn y_axis(&self) -> Axis {
        let ends = |point: &CurvePoint| [point.spread.0, point.spread.1].map(|y| self.scaled(y));
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for end in self.points().flat_map(ends).filter(|end| end.is_finite()) {
            (low, high) = (low.min(end), high.max(end));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if self.y_log { Axis::log(low, high) } else { Axis::linear(high) }
    }
}

fn font(size: u32) -> TextStyle<'static> {
    (FONT, size).into_font().color(&INK)
}

fn draw<DB: DrawingBackend>(figure: &Figure, root: &DrawingArea<DB, Shift>, scale: u32) -> anyhow::Result<()>
where
    DB::ErrorType: 'static,
{
    root.fill(&WHITE)?;
    let (title, rest) = root.split_vertically(LINE * scale);
    let centre = (middle_of(figure.size().0 * scale)?, middle_of(LINE * scale)? + middle_of(8 * scale)?);
    title.draw(&Text::new(
        figure.title.clone(),
        centre,
        font(20 * scale).pos(Pos::new(HPos::Center, VPos::Center)),
    ))?;
    let (panels, legend) = rest.split_vertically(PANEL.1 * figure.rows() * scale);
    let areas = panels.split_evenly((figure.rows() as usize, figure.columns() as usize));
    for (panel, area) in figure.panels.iter().zip(&areas) {
        draw_panel(figure, panel, area, scale)?;
    }
    let columns = figure.legend_columns();
    let places = legend.split_evenly((figure.legend_lines().max(1) as usize, columns as usize));
    for (curve, place) in figure.legend().into_iter().zip(&places) {
        draw_key(curve, place, scale)?;
    }
    Ok(())
}

fn middle_of(pixels: u32) -> anyhow::Result<i32> {
    Ok(i32::try_from(pixels / 2)?)
}

fn draw_panel<DB: DrawingBackend>(
    figure: &Figure,
    panel: &Panel,
    area: &DrawingArea<DB, Shift>,
    scale: u32,
) -> anyhow::Result<()>
where
    DB::ErrorType: 'static,
{
    let y = figure.y_axis();
    let x = Axis::linear(figure.points().map(|point| point.x).fold(0.0, f64::max));
    let mut chart = ChartBuilder::on(area)
        .margin(10 * scale)
        .margin_right(18 * scale)
        .caption(&panel.title, font(17 * scale))
        .x_label_area_size(46 * scale)
        .y_label_area_size(74 * scale)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .bold_line_style(GRID.stroke_width(scale))
        .light_line_style(TRANSPARENT)
        .axis_style(INK.stroke_width(scale))
        .label_style(font(14 * scale))
        .axis_desc_style(font(15 * scale))
        .x_desc(&figure.x_label)
        .y_desc(&figure.y_label)
        .draw()?;
    let plane = chart.plotting_area();
    for curve in &panel.curves {
        let stroke = curve.look.colour.stroke_width(2 * scale);
        let points: Vec<(f64, f64)> =
            curve.points.iter().map(|point| (point.x, figure.scaled(point.y))).collect();
        match curve.look.dashes {
            Some((line, gap)) => {
                plane.draw(&DashedPathElement::new(points.clone(), line * scale, gap * scale, stroke))?;
            }
            None => plane.draw(&PathElement::new(points.clone(), stroke))?,
        }
        for (point, at) in curve.points.iter().zip(points) {
            let (least, largest) = (figure.scaled(point.spread.0), figure.scaled(point.spread.1));
            let whisker = vec![(point.x, least), (point.x, largest)];
            plane.draw(&PathElement::new(whisker, curve.look.colour.stroke_width(scale)))?;
            draw_marker(plane, at, curve.look, scale)?;
        }
    }
    Ok(())
}

/// A line of the legend.
fn draw_key<DB: DrawingBackend>(
    curve: &Curve,
    place: &DrawingArea<DB, Shift>,
    scale: u32,
) -> anyhow::Result<()>
where
    DB::ErrorType: 'static,
{
    let unit = i32::try_from(scale)?;
    let middle = i32::try_from(LINE / 2)? * unit;
    let (left, right) = (16 * unit, 60 * unit);
    let stroke = curve.look.colour.stroke_width(2 * scale);
    let ends = vec![(left, middle), (right, middle)];
    match curve.look.dashes {
        Some((line, gap)) => {
            place.draw(&DashedPathElement::new(ends, line * scale, gap * scale, stroke))?;
        }
        None => place.draw(&PathElement::new(ends, stroke))?,
    }
    draw_marker(place, ((left + right) / 2, middle), curve.look, scale)?;
    let style = font(15 * scale).pos(Pos::new(HPos::Left, VPos::Center));
    // The font's box reaches lower than its letters.
    place.draw(&Text::new(curve.label.clone(), (right + 10 * unit, middle + 2 * unit), style))?;
    Ok(())
}

fn draw_marker<DB: DrawingBackend, CT: plotters::coord::CoordTranslate>(
    area: &DrawingArea<DB, CT>,
    at: CT::From,
    look: Look,
    scale: u32,
) -> anyhow::Result<()>
where
    DB::ErrorType: 'static,
{
    let radius = 5 * i32::try_from(scale)?;
    let (fill, stroke) = (look.colour.filled(), look.colour.stroke_width(2 * scale));
    let polygon = |corners: &[(i32, i32)]| {
        Polygon::new(corners.iter().map(|(x, y)| (x * radius / 4, y * radius / 4)).collect::<Vec<_>>(), fill)
    };
    let origin = EmptyElement::at(at);
    match look.marker {
        Marker::Disc => area.draw(&(origin + Circle::new((0, 0), radius, fill)))?,
        Marker::Square => area.draw(&(origin + polygon(&[(-4, -4), (4, -4), (4, 4), (-4, 4)])))?,
        Marker::Triangle => area.draw(&(origin + polygon(&[(0, -5), (5, 4), (-5, 4)])))?,
        Marker::Diamond => area.draw(&(origin + polygon(&[(0, -6), (6, 0), (0, 6), (-6, 0)])))?,
        Marker::Ring => {
            let inside = Circle::new((0, 0), radius, WHITE.filled());
            area.draw(&(origin + inside + Circle::new((0, 0), radius, stroke)))?;
        }
        Marker::Cross => {
            let down = PathElement::new(vec![(-radius, -radius), (radius, radius)], stroke);
            let up = PathElement::new(vec![(-radius, radius), (radius, -radius)], stroke);
            area.draw(&(origin + down + up))?;
        }
    }
    Ok(())
}
