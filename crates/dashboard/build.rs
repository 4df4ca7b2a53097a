//! Prepares the files in `page` for the program: strips them, and writes the list of them.

#[path = "src/strip.rs"]
mod strip;

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use strip::{Language, strip};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=page");
    let out = env::var("OUT_DIR")?;
    let entries = fs::read_dir("page")?.map(|entry| Ok(entry?.file_name().into_string()));
    let mut names = entries
        .collect::<Result<Result<Vec<_>, _>, std::io::Error>>()?
        .map_err(|name| format!("not the name of a file of the dashboard: {}", name.display()))?;
    names.sort();
    let mut list = String::from("&[\n");
    for name in names {
        let (language, content_type) = match Path::new(&name).extension().and_then(|end| end.to_str()) {
            Some("html") => (Language::Markup, "HTML"),
            Some("css") => (Language::Style, "CSS"),
            Some("js") => (Language::Script, "SCRIPT"),
            Some("svg") => (Language::Markup, "IMAGE"),
            _ => return Err(format!("a file of the dashboard with an unknown ending: {name}").into()),
        };
        let file = Path::new(&out).join(&name);
        fs::write(&file, strip(&fs::read_to_string(Path::new("page").join(&name))?, language))?;
        let path = if name == "index.html" { "/".to_owned() } else { format!("/dashboard/{name}") };
        writeln!(
            list,
            "Asset {{ path: {path:?}, content_type: {content_type}, bytes: include_bytes!({file:?}) }},"
        )?;
    }
    list.push(']');
    fs::write(Path::new(&out).join("assets.rs"), list)?;
    Ok(())
}
