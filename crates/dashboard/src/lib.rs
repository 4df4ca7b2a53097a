//! The web dashboard: its page, scripts and styles, as constants of the program.
//!
//! The files in `page` are what the browser gets, without comments and indentation: ES modules and a style sheet, without
//! a framework and without tools of the web. They use only the operator API. The server sends them with headers that
//! allow nothing from other hosts.

/// A file of the dashboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asset {
    /// Its path on the server.
    pub path: &'static str,
    pub content_type: &'static str,
    pub bytes: &'static [u8],
}

/// The path of the page itself.
pub const PAGE: &str = "/";

/// The directory of all other files.
pub const DIRECTORY: &str = "/dashboard/";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

/// Every file of the dashboard.
pub const ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

#[cfg(test)]
mod strip;

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES_MAX: usize = 300 * 1_024;

    fn scripts() -> impl Iterator<Item = (&'static str, &'static str)> {
        let scripts = ASSETS.iter().filter(|asset| asset.content_type == SCRIPT);
        scripts.map(|asset| (asset.path, std::str::from_utf8(asset.bytes).unwrap()))
    }

    #[test]
    fn the_files_are_small_together() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.bytes.len()).sum();
        assert!(bytes <= BYTES_MAX, "{bytes} bytes, at most {BYTES_MAX}");
    }

    #[test]
    fn every_import_is_a_file_of_the_dashboard() {
        for (path, text) in scripts() {
            for line in text.lines().filter(|line| line.contains(" from \"")) {
                let name = line.split(" from \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
                let wanted = name.replace("./", DIRECTORY);
                assert!(ASSETS.iter().any(|asset| asset.path == wanted), "{path}: {name}");
            }
        }
    }

    /// Data from outside is text: nothing turns a string into elements or into code.
    #[test]
    fn no_script_turns_text_into_elements_or_code() {
        let forbidden = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "DOMParser",
            "createContextualFragment",
            "eval(",
            "new Function",
            "srcdoc",
            "setAttribute(\"style\"",
            "setAttribute(\"on",
            "localStorage",
            "sessionStorage",
        ];
        for (path, text) in scripts() {
            for word in forbidden {
                assert!(!text.contains(word), "{path}: {word}");
            }
        }
    }

    /// A block that is not closed takes every rule after it along.
    #[test]
    fn every_block_of_the_style_is_closed() {
        let styles = ASSETS.iter().filter(|asset| asset.content_type == CSS);
        for style in styles {
            let count = |wanted: u8| style.bytes.iter().filter(|byte| **byte == wanted).count();
            assert_eq!(count(b'{'), count(b'}'), "{}", style.path);
        }
    }

    #[test]
    fn nothing_is_loaded_from_another_host() {
        for asset in ASSETS {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            let text = text.replace("http://www.w3.org/2000/svg", "");
            for scheme in ["http://", "https://"] {
                assert!(!text.contains(scheme), "{}: {scheme}", asset.path);
            }
        }
    }
}
