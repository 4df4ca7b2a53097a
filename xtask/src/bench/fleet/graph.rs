//! Graphs of cost against the size of a fleet: SVG with logarithmic axes.
//!
//! ```text
//!   title
//!   legend
//!   10 ┤      ╭──        both axes have a line for each power of ten
//!    1 ┤ ─────╯
//!      └─┬────┬─ machines
//! ```

use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 380.0;
/// The area of the plot.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 596.0;
const TOP: f64 = 74.0;
const BOTTOM: f64 = 326.0;
const LEGEND_Y: f64 = 52.0;
/// Between two names of the legend.
const LEGEND_STEP: f64 = 200.0;

/// Colours for light and dark pages; those of the series have a good contrast on both.
const STYLE: &str = "\
  text { font: 13px system-ui, sans-serif; fill: #3c4043; }
  .title { font-size: 15px; font-weight: 600; fill: #202124; }
  .page { fill: #ffffff; }
  .grid { stroke: #dadce0; stroke-width: 1; }
  .line { fill: none; stroke-width: 2.5; }
  .s0 { stroke: #1a73e8; } circle.s0, rect.s0 { fill: #1a73e8; }
  .s1 { stroke: #d9730d; } circle.s1, rect.s1 { fill: #d9730d; }
  .s2 { stroke: #2e8b57; } circle.s2, rect.s2 { fill: #2e8b57; }
  @media (prefers-color-scheme: dark) {
    text { fill: #c4c7c5; }
    .title { fill: #e8eaed; }
    .page { fill: #1f1f1f; }
    .grid { stroke: #444746; }
  }
";

/// One line of a graph. Figures that are not positive have no place on it.
pub(super) struct Series {
    pub(super) name: &'static str,
    /// Number of machines, and cost.
    pub(super) points: Vec<(f64, f64)>,
}

/// A graph with up to three lines.
pub(super) struct Graph {
    pub(super) title: &'static str,
    pub(super) series: Vec<Series>,
}

/// Powers of ten on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decades {
    first: i32,
    last: i32,
}

impl Decades {
    /// The powers of ten around these values, at least one decade.
    fn around(values: impl Iterator<Item = f64>) -> Self {
        let exponents: Vec<_> = values.filter(|value| *value > 0.0).map(f64::log10).collect();
        let min = exponents.iter().copied().fold(f64::INFINITY, f64::min);
        let max = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if exponents.is_empty() {
            return Self { first: 0, last: 1 };
        }
        let (first, last) = (whole(min.floor()), whole(max.ceil()));
        Self { first, last: last.max(first + 1) }
    }

    fn exponents(self) -> impl Iterator<Item = i32> {
        self.first..=self.last
    }

    /// The share of the axis below a value.
    fn share(self, value: f64) -> f64 {
        (value.log10() - f64::from(self.first)) / f64::from(self.last - self.first)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the exponent of a float is small")]
fn whole(exponent: f64) -> i32 {
    exponent as i32
}

impl Graph {
    pub(super) fn to_svg(&self) -> String {
        let points = || self.series.iter().flat_map(|series| series.points.iter());
        let (x, y) =
            (Decades::around(points().map(|point| point.0)), Decades::around(points().map(|point| point.1)));
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\" role=\"img\" aria-label=\"{}\">\n<style>\n{STYLE}</style>\n\
             <rect class=\"page\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"8\"/>\n\
             <text class=\"title\" x=\"20\" y=\"28\">{}</text>\n",
            self.title, self.title
        );
        axes(&mut svg, x, y);
        for (place, series) in self.series.iter().enumerate() {
            series.draw(&mut svg, place, x, y);
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// Lines and labels of both axes.
fn axes(svg: &mut String, x: Decades, y: Decades) {
    for exponent in x.exponents() {
        let (at, label) = (across(x, 10_f64.powi(exponent)), power_of_ten(exponent));
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{BOTTOM}\"/>"
        );
        let y = BOTTOM + 20.0;
        let _ = writeln!(svg, "<text x=\"{at:.1}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>");
    }
    for exponent in y.exponents() {
        let (at, label) = (up(y, 10_f64.powi(exponent)), power_of_ten(exponent));
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{RIGHT}\" y2=\"{at:.1}\"/>"
        );
        let (x, y) = (LEFT - 8.0, at + 4.0);
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{label}</text>");
    }
    let (middle, y) = (f64::midpoint(LEFT, RIGHT), BOTTOM + 42.0);
    let _ = writeln!(svg, "<text x=\"{middle}\" y=\"{y}\" text-anchor=\"middle\">machines</text>");
}

impl Series {
    fn draw(&self, svg: &mut String, place: usize, x: Decades, y: Decades) {
        let legend = 20.0 + LEGEND_STEP * [0.0, 1.0, 2.0][place.min(2)];
        let (square, text) = (LEGEND_Y - 10.0, legend + 16.0);
        let _ = writeln!(
            svg,
            "<rect class=\"s{place}\" x=\"{legend}\" y=\"{square}\" width=\"10\" height=\"10\"/>\
             <text x=\"{text}\" y=\"{LEGEND_Y}\">{}</text>",
            self.name
        );
        let points = self.points.iter().filter(|point| point.1 > 0.0);
        let points: Vec<_> = points.map(|(machines, cost)| (across(x, *machines), up(y, *cost))).collect();
        let line: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(svg, "<polyline class=\"line s{place}\" points=\"{}\"/>", line.join(" "));
        for (x, y) in points {
            let _ = writeln!(svg, "<circle class=\"s{place}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>");
        }
    }
}

fn across(axis: Decades, value: f64) -> f64 {
    LEFT + axis.share(value) * (RIGHT - LEFT)
}

fn up(axis: Decades, value: f64) -> f64 {
    BOTTOM - axis.share(value) * (BOTTOM - TOP)
}

/// The number in digits, with a comma between thousands.
fn power_of_ten(exponent: i32) -> String {
    let zeros = usize::try_from(exponent.unsigned_abs()).unwrap_or_default();
    if exponent < 0 {
        return format!("0.{}1", "0".repeat(zeros - 1));
    }
    let mut text = format!("1{}", "0".repeat(zeros));
    for place in 1..=zeros / 3 {
        text.insert(zeros + 1 - 3 * place, ',');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten_are_read_easily() {
        let texts = [-3, -1, 0, 2, 3, 6].map(power_of_ten);
        assert_eq!(texts, ["0.001", "0.1", "1", "100", "1,000", "1,000,000"]);
    }

    #[test]
    fn an_axis_has_whole_decades() {
        assert_eq!(Decades::around([0.03, 4.0].into_iter()), Decades { first: -2, last: 1 });
        assert_eq!(Decades::around([10.0].into_iter()), Decades { first: 1, last: 2 });
        assert_eq!(Decades::around([0.0].into_iter()), Decades { first: 0, last: 1 });
    }

    #[test]
    fn twice_as_many_decades_are_twice_as_far() {
        let axis = Decades { first: 3, last: 6 };
        let far = |value| across(axis, value) - LEFT;
        assert!((far(1e5) - 2.0 * far(1e4)).abs() < 1e-6 && (across(axis, 1e6) - RIGHT).abs() < 1e-6);
        assert!((up(axis, 1e3) - BOTTOM).abs() < 1e-6 && up(axis, 1e4) < BOTTOM);
    }

    #[test]
    fn a_figure_that_is_not_positive_has_no_point() {
        let series = Series { name: "a", points: vec![(1e3, 0.0), (1e4, 2.0)] };
        let svg = Graph { title: "t", series: vec![series] }.to_svg();
        assert_eq!(svg.matches("<circle").count(), 1, "{svg}");
    }
}
