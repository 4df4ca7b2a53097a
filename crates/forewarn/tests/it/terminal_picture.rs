//! Pictures of a terminal, drawn from the lines of a document.

use std::fmt::Write as _;

/// Characters of a line; longer ones are continued on the next.
const COLUMNS: usize = 108;
const CHARACTER_WIDTH: f64 = 8.4;
const LINE_HEIGHT: usize = 19;
const MARGIN: usize = 16;
/// The columns and two margins.
const WIDTH: usize = 940;

/// An SVG of lines of a console: those that begin with `$ ` are typed, the others are printed.
pub(crate) fn draw(title: &str, lines: &[&str]) -> String {
    let rows: Vec<_> = lines.iter().flat_map(|line| rows(line)).collect();
    let width = WIDTH;
    let height = rows.len() * LINE_HEIGHT + 2 * MARGIN;
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#0d1117\"/>\n\
         <g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"14\" xml:space=\"preserve\">\n",
        escape(title)
    );
    for (number, Row { is_typed, is_first, text }) in rows.iter().enumerate() {
        let y = MARGIN + 14 + number * LINE_HEIGHT;
        if *is_typed && *is_first {
            text_element(&mut picture, MARGIN as f64, y, "#3fb950", "$");
        }
        let indent = if *is_typed { 2.0 * CHARACTER_WIDTH } else { 0.0 };
        let color = if *is_typed { "#ffffff" } else { "#9da7b3" };
        for (column, group) in groups(text) {
            let x = MARGIN as f64 + indent + column as f64 * CHARACTER_WIDTH;
            text_element(&mut picture, x, y, color, group);
        }
    }
    picture + "</g>\n</svg>\n"
}

struct Row {
    is_typed: bool,
    /// False for the continuation of a line.
    is_first: bool,
    text: String,
}

fn rows(line: &str) -> Vec<Row> {
    let typed = line.strip_prefix("$ ");
    let columns = if typed.is_some() { COLUMNS - 2 } else { COLUMNS };
    let mut rest = typed.unwrap_or(line);
    let mut rows = Vec::new();
    while !rest.is_empty() {
        let (text, after) = rest.split_at(end_of_row(rest, columns));
        rows.push(Row { is_typed: typed.is_some(), is_first: rows.is_empty(), text: text.to_owned() });
        rest = after;
    }
    rows
}

/// The end of the first row: after the last space or comma that is not too far, or where the row is full.
fn end_of_row(text: &str, columns: usize) -> usize {
    let Some((full, _)) = text.char_indices().nth(columns) else { return text.len() };
    text[..full].rfind([' ', ',']).map_or(full, |place| place + 1)
}

/// The words of a row that belong together, each with its column: more than one space separates columns of a table.
fn groups(text: &str) -> Vec<(usize, &str)> {
    let mut groups = Vec::new();
    let mut column = 0;
    for part in text.split_inclusive("  ") {
        let group = part.trim_start();
        let indent = part.chars().count() - group.chars().count();
        if !group.trim().is_empty() {
            groups.push((column + indent, group.trim_end()));
        }
        column += part.chars().count();
    }
    groups
}

/// The width is given, so that columns stand below each other in any font.
fn text_element(picture: &mut String, x: f64, y: usize, color: &str, text: &str) {
    let length = text.chars().count() as f64 * CHARACTER_WIDTH;
    let text = escape(text);
    writeln!(
        picture,
        "<text x=\"{x:.1}\" y=\"{y}\" textLength=\"{length:.1}\" fill=\"{color}\">{text}</text>"
    )
    .unwrap();
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[test]
fn a_long_line_is_continued_columns_are_kept_and_marks_are_escaped() {
    let long = format!("$ {}", "x".repeat(COLUMNS));
    let picture = draw("A & B", &[&long, "<ok>"]);
    assert_eq!(
        picture.matches("<text ").count(),
        4,
        "prompt, two rows of a command, one row of output: {picture}"
    );
    assert!(
        picture.contains("<title>A &amp; B</title>") && picture.contains(">&lt;ok&gt;</text>"),
        "{picture}"
    );
}
