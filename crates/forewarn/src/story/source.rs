//! Where stories come from: files, pages with a story in them, standard input, and the library.

use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path};

use anyhow::{Context, Result, anyhow};
use forewarn_story::library::{scenario, story_of_page};

/// Bytes of a story that are read: more than the parser accepts.
const STORY_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// Reads a story: a file, a page (`.md`) with a story in it, `-` for standard input, or a name of the library. A file
/// comes before a story of the library with the same name.
pub(crate) fn read(source: &Path) -> Result<String> {
    if let Some(name) = library_name(source).filter(|name| *name != "-" && !source.exists()) {
        let scenario = scenario(name).map_err(|unknown| anyhow!("no such file, and {unknown}"))?;
        return Ok(scenario.story_in_place());
    }
    let text = read_file(source)?;
    if source.extension().is_some_and(|extension| extension == "md") {
        let hint = "\n  hint: a page has its story in a block that begins with ```story";
        return story_of_page(&text)
            .with_context(|| format!("no story in the page: {}{hint}", source.display()));
    }
    Ok(text)
}

/// Reads a file as it is; `-` is standard input.
pub(super) fn read_file(file: &Path) -> Result<String> {
    let text = match file == Path::new("-") {
        true => text_of(io::stdin()),
        false => fs::File::open(file).map_err(anyhow::Error::from).and_then(text_of),
    };
    text.with_context(|| format!("cannot read the story: {}", file.display()))
}

/// The name, if the path is one: no directory, no extension.
fn library_name(source: &Path) -> Option<&str> {
    let mut parts = source.components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(name)), None) if source.extension().is_none() => name.to_str(),
        (_, _) => None,
    }
}

fn text_of(source: impl Read) -> Result<String> {
    let mut text = String::new();
    source.take(STORY_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_path_is_one_of_the_library() {
        assert!(read(Path::new("freeze")).unwrap().trim_start().starts_with("host h1"));
        for (source, words) in [
            ("freze", "no such file, and no such story in the library: freze\n  hint: did you mean freeze?"),
            ("./freeze", "cannot read the story: ./freeze"),
            ("freeze.story", "cannot read the story: freeze.story"),
        ] {
            let error = format!("{:#}", read(Path::new(source)).unwrap_err());
            assert!(error.starts_with(words), "{error}");
        }
    }

    #[test]
    fn a_page_is_read_like_a_story() {
        let directory = tempfile::tempdir().unwrap();
        let page = directory.path().join("page.md");
        fs::write(&page, "# Title\n\n```story\nhost h1\n```\n").unwrap();
        assert_eq!(read(&page).unwrap(), "\n\n\nhost h1\n");
        fs::write(&page, "# Title\n").unwrap();
        assert!(read(&page).unwrap_err().to_string().starts_with("no story in the page"));
    }
}
