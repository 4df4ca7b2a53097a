//! Every story under `stories/` runs against the pure rules and shows what its snapshot shows.
//!
//! After a change that is meant, `cargo insta review`, or `INSTA_UPDATE=always cargo test -p forewarn-story`, writes the
//! snapshots anew; read them before you commit them.

use std::fs;

#[test]
#[allow(clippy::panic, reason = "a story that fails says why")]
fn every_story_comes_true_and_shows_what_it_showed_before() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../../stories/seen");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        insta::glob!("../../../stories", "*.story", |path| {
            let text = fs::read_to_string(path).expect("a readable story");
            let story = forewarn_story::parse(&text)
                .unwrap_or_else(|mistake| panic!("{}\n{mistake}", path.display()));
            let transcript =
                forewarn_story::run(&story).unwrap_or_else(|mistake| panic!("{}\n{mistake}", path.display()));
            insta::assert_snapshot!("seen", transcript.to_string());
        });
    });
}
