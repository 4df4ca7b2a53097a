//! Command lines in documents and in help texts: a URL with `?` or `&` is quoted. A shell expands `?`, zsh fails if it
//! matches nothing, and `&` ends the command.

use super::Problem;

/// Programs whose command lines are checked.
const PROGRAMS: [&str; 6] = ["forewarn", "forewarn-agent", "curl", "printf", "sudo", "az"];

/// Characters that a shell does not leave as they are.
const SPECIAL: [char; 2] = ['?', '&'];

pub(super) fn check(path: &str, text: &str) -> Vec<Problem> {
    let lines = text.lines().enumerate().filter(|(_, line)| is_command(line));
    let wrong = lines.filter_map(|(place, line)| Some((place, unquoted_url(line)?)));
    wrong.map(|(place, url)| Problem::new(path, place, format!("a URL has to be quoted: {url}"))).collect()
}

/// Returns true if a line begins with a program, after a prompt or not.
fn is_command(line: &str) -> bool {
    let line = line.trim_start();
    let first = line.strip_prefix("$ ").unwrap_or(line).split(' ').next().unwrap_or_default();
    PROGRAMS.contains(&first)
}

/// The first URL outside quotes that has a special character.
fn unquoted_url(line: &str) -> Option<String> {
    let (mut quote, mut word) = (None, String::new());
    // The space ends the last word.
    for char in line.chars().chain([' ']) {
        match quote {
            Some(open) if char == open => quote = None,
            Some(_) => {}
            None if matches!(char, '\'' | '"' | '`') => quote = Some(char),
            None if char == ' ' => {
                if word.contains("://") && word.contains(SPECIAL) {
                    return Some(word);
                }
                word.clear();
            }
            None => word.push(char),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_a_shell_would_change_is_found() {
        for line in [
            "$ curl http://h/x?a=b",
            "  forewarn webhook create grid https://fn.example/events?code=KEY --format eventgrid",
            "curl -d 'a?b' http://h/x&y",
            "$ printf 'x' | forewarn webhook create a https://h/?k",
        ] {
            let found = check("a.md", &format!("text\n{line}\n"));
            assert_eq!(found.len(), 1, "{line}");
            assert_eq!(found[0].line, 2);
        }
    }

    #[test]
    fn quoted_urls_other_urls_and_prose_are_left_alone() {
        for line in [
            "$ curl 'http://h/x?a=b&c'",
            "$ curl -H Metadata:true \"http://h/x?a=b\"",
            "$ curl http://h/x && echo a?",
            "The URL http://h/x?a=b has a query.",
            "forewarn: no such file?",
        ] {
            assert_eq!(check("a.md", line), [], "{line}");
        }
    }
}
