//! Charts as SVG, each for a light and a dark page: rates by model and tool, rate against cost, and the trend of a cell.

use plotters::element::ErrorBar;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::summary::percent_number;
use crate::text::visible;

/// A page that a chart stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    Light,
    Dark,
}

impl Theme {
    /// With the end of a file's name.
    pub const ALL: [(Theme, &'static str); 2] = [(Theme::Light, ""), (Theme::Dark, "-dark")];

    fn paper(self) -> RGBColor {
        if self == Theme::Light { RGBColor(255, 255, 255) } else { RGBColor(13, 17, 23) }
    }

    fn ink(self) -> RGBColor {
        if self == Theme::Light { RGBColor(31, 35, 40) } else { RGBColor(230, 237, 243) }
    }

    fn faint(self) -> RGBColor {
        if self == Theme::Light { RGBColor(208, 215, 222) } else { RGBColor(61, 68, 77) }
    }

    fn line(self) -> RGBColor {
        if self == Theme::Light { RGBColor(9, 105, 218) } else { RGBColor(88, 166, 255) }
    }

    fn bad(self) -> RGBColor {
        if self == Theme::Light { RGBColor(188, 76, 0) } else { RGBColor(240, 136, 62) }
    }

    /// From paper to the line's colour: one hue, so that it reads without telling colours apart.
    fn heat(self, share: f64) -> RGBColor {
        let (from, to) = (self.paper(), self.line());
        let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * share * 0.62) as u8;
        RGBColor(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
    }
}

/// A chart that could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw: {0}")]
pub struct ChartError(String);

fn failed(error: impl std::fmt::Display) -> ChartError {
    ChartError(error.to_string())
}

/// One place of the heat map.
#[derive(Clone, Debug)]
pub struct Heat {
    pub row: String,
    pub column: String,
    pub passed: usize,
    pub of: usize,
    pub interval: (f64, f64),
    /// Below its floor, or not to be judged.
    pub mark: Option<&'static str>,
}

const FONT: &str = "sans-serif";

/// Rates by row and column, with counts and intervals.
///
/// # Errors
/// When it cannot be drawn.
pub fn matrix(heats: &[Heat], theme: Theme) -> Result<String, ChartError> {
    let (mut rows, mut columns): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for heat in heats {
        if !rows.contains(&heat.row.as_str()) {
            rows.push(&heat.row);
        }
        if !columns.contains(&heat.column.as_str()) {
            columns.push(&heat.column);
        }
    }
    let widest = rows.iter().map(|row| row.chars().count()).max().unwrap_or(0).min(60) as i32;
    let (left, top, wide, high) = (24 + widest * 7, 44, 104, 50);
    let size = ((left + wide * columns.len() as i32 + 12) as u32, (top + high * rows.len() as i32 + 12) as u32);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&theme.paper()).map_err(failed)?;
        let style =
            |points: i32, hpos: HPos| (FONT, points).into_font().color(&theme.ink()).pos(Pos::new(hpos, VPos::Center));
        for (index, column) in columns.iter().enumerate() {
            let at = (left + wide * index as i32 + wide / 2, top / 2 + 6);
            area.draw(&Text::new(short(column, 15), at, style(13, HPos::Center))).map_err(failed)?;
        }
        for (index, row) in rows.iter().enumerate() {
            let at = (left - 10, top + high * index as i32 + high / 2);
            area.draw(&Text::new(short(row, 60), at, style(13, HPos::Right))).map_err(failed)?;
        }
        for heat in heats {
            let (Some(column), Some(row)) = (
                columns.iter().position(|column| *column == heat.column),
                rows.iter().position(|row| *row == heat.row),
            ) else {
                continue;
            };
            let (x, y) = (left + wide * column as i32, top + high * row as i32);
            let corners = [(x + 1, y + 1), (x + wide - 1, y + high - 1)];
            let share = if heat.of == 0 { 0.0 } else { heat.passed as f64 / heat.of as f64 };
            area.draw(&Rectangle::new(corners, theme.heat(share).filled())).map_err(failed)?;
            let border = if heat.mark.is_some() { theme.bad().stroke_width(3) } else { theme.faint().stroke_width(1) };
            area.draw(&Rectangle::new(corners, border)).map_err(failed)?;
            let counts = format!("{}/{} · {} %", heat.passed, heat.of, percent_number(share));
            let interval = format!("{}–{}", percent_number(heat.interval.0), percent_number(heat.interval.1));
            let below = heat.mark.map_or(interval.clone(), |mark| format!("{mark} {interval}"));
            area.draw(&Text::new(counts, (x + wide / 2, y + 18), style(13, HPos::Center))).map_err(failed)?;
            area.draw(&Text::new(below, (x + wide / 2, y + 35), style(11, HPos::Center))).map_err(failed)?;
        }
        area.present().map_err(failed)?;
    }
    Ok(svg)
}

fn short(text: &str, most: usize) -> String {
    visible::excerpt(text, most)
}

/// A contestant between its rate and what an attempt costs.
#[derive(Clone, Debug)]
pub struct Priced {
    pub name: String,
    pub rate: f64,
    pub interval: (f64, f64),
    /// Of an attempt: dollars, or seconds where no price is known.
    pub cost: f64,
}

/// Rates with their intervals against cost.
///
/// # Errors
/// When it cannot be drawn.
pub fn cost(points: &[Priced], unit: &str, theme: Theme) -> Result<String, ChartError> {
    let most = points.iter().map(|point| point.cost).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (760, 360)).into_drawing_area();
        area.fill(&theme.paper()).map_err(failed)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(14)
            .x_label_area_size(44)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..most * 1.1, 0.0..100.0)
            .map_err(failed)?;
        axes(
            &mut chart,
            theme,
            (unit, &|cost| format!("{cost:.3}").trim_end_matches('0').trim_end_matches('.').to_owned()),
        )?;
        for (index, point) in points.iter().enumerate() {
            let (low, high) = point.interval;
            let bar = ErrorBar::new_vertical(
                point.cost,
                low * 100.0,
                point.rate * 100.0,
                high * 100.0,
                theme.line().filled(),
                8,
            );
            chart.draw_series(std::iter::once(bar)).map_err(failed)?;
            // A name stays on the paper, and neighbours get theirs at different heights.
            let (side, away) = if point.cost > most * 0.6 { (HPos::Right, -10) } else { (HPos::Left, 10) };
            let style = (FONT, 13).into_font().color(&theme.ink()).pos(Pos::new(side, VPos::Center));
            let name = Text::new(short(&point.name, 44), (away, if index % 2 == 0 { -8 } else { 8 }), style);
            let label = EmptyElement::at((point.cost, point.rate * 100.0)) + name;
            chart.draw_series(std::iter::once(label)).map_err(failed)?;
        }
        area.present().map_err(failed)?;
    }
    Ok(svg)
}

/// One run of a cell.
#[derive(Clone, Debug)]
pub struct Step {
    pub passed: usize,
    pub of: usize,
    pub interval: (f64, f64),
    /// The floor it was judged by, in passes.
    pub floor: Option<usize>,
}

/// Rates of a cell over its runs, with the band below its floor.
///
/// # Errors
/// When it cannot be drawn.
pub fn trend(steps: &[Step], theme: Theme) -> Result<String, ChartError> {
    let last = steps.len().max(2) as f64 - 1.0;
    let share = |passed: usize, of: usize| 100.0 * passed as f64 / of.max(1) as f64;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (760, 240)).into_drawing_area();
        area.fill(&theme.paper()).map_err(failed)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .x_label_area_size(38)
            .y_label_area_size(56)
            .build_cartesian_2d(-0.3..last + 0.3, 0.0..100.0)
            .map_err(failed)?;
        for (index, step) in steps.iter().enumerate() {
            if let Some(floor) = step.floor {
                let (from, to) = (index as f64 - 0.5, index as f64 + 0.5);
                let band = [(from, 0.0), (to, share(floor, step.of))];
                chart.draw_series([Rectangle::new(band, theme.bad().mix(0.18).filled())]).map_err(failed)?;
                let edge = vec![(from, band[1].1), (to, band[1].1)];
                chart.draw_series([PathElement::new(edge, theme.bad().stroke_width(2))]).map_err(failed)?;
            }
        }
        // Runs are counted, and there is none between two of them.
        let number = |at: &f64| {
            if (at - at.round()).abs() < 0.01 { format!("{:.0}", at + 1.0) } else { String::new() }
        };
        axes(&mut chart, theme, ("run, oldest first", &number))?;
        let points: Vec<(f64, f64)> =
            steps.iter().enumerate().map(|(index, step)| (index as f64, share(step.passed, step.of))).collect();
        chart.draw_series(LineSeries::new(points, theme.line().stroke_width(2))).map_err(failed)?;
        chart
            .draw_series(steps.iter().enumerate().map(|(index, step)| {
                let (low, high) = step.interval;
                let rate = share(step.passed, step.of);
                ErrorBar::new_vertical(index as f64, low * 100.0, rate, high * 100.0, theme.line().filled(), 6)
            }))
            .map_err(failed)?;
        area.present().map_err(failed)?;
    }
    Ok(svg)
}

type Plane<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

/// Below the picture: what its places mean, and how one is written.
type Below<'a> = (&'a str, &'a dyn Fn(&f64) -> String);

fn axes(chart: &mut Plane<'_, '_>, theme: Theme, (what, written): Below<'_>) -> Result<(), ChartError> {
    let label = (FONT, 13).into_font().color(&theme.ink());
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(theme.faint())
        .axis_style(theme.faint())
        .label_style(label.clone())
        .axis_desc_style(label)
        .x_desc(what)
        .x_label_formatter(written)
        .y_desc("passed, %")
        .y_label_formatter(&|rate| format!("{rate:.0}"))
        .y_labels(6)
        .draw()
        .map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_are_svg_and_hold_nothing_foreign() {
        let heat = Heat {
            row: "<script>alert(1)</script> \u{202E}\u{1B}[31m".into(),
            column: "a&b".into(),
            passed: 3,
            of: 4,
            interval: (0.3, 0.95),
            mark: Some("below"),
        };
        let step = Step { passed: 3, of: 4, interval: (0.3, 0.95), floor: Some(2) };
        let point = Priced { name: heat.row.clone(), rate: 0.75, interval: heat.interval, cost: 0.0 };
        for (theme, _) in Theme::ALL {
            let all = [
                matrix(std::slice::from_ref(&heat), theme).unwrap(),
                matrix(&[], theme).unwrap(),
                cost(&[point.clone(), point.clone()], "seconds", theme).unwrap(),
                trend(std::slice::from_ref(&step), theme).unwrap(),
                trend(&[], theme).unwrap(),
            ];
            for svg in all {
                assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
                assert!(!svg.contains("<script") && !svg.contains('\u{202E}') && !svg.contains('\u{1B}'), "{svg}");
            }
        }
    }
}
