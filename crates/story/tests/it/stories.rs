//! Every story under `stories/` runs against the pure rules and shows what its snapshot shows.
//!
//! After a change that is meant, `cargo insta review`, or `INSTA_UPDATE=always cargo test -p forewarn-story`, writes the
//! snapshots anew; read them before you commit them.

use std::fs;

/// promise: X1
#[test]
#[allow(clippy::panic, reason = "a story that fails says why")]
fn every_story_passes_and_matches_its_snapshot() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../../../stories/seen");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        insta::glob!("../../../../stories", "*.story", |path| {
            let text = fs::read_to_string(path).expect("a readable story");
            let story =
                forewarn_story::parse(&text).unwrap_or_else(|error| panic!("{}\n{error}", path.display()));
            let transcript =
                forewarn_story::run(&story).unwrap_or_else(|error| panic!("{}\n{error}", path.display()));
            insta::assert_snapshot!("seen", transcript.to_string());
        });
    });
}
