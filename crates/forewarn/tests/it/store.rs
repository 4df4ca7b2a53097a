//! Data directories from outside: checked, exported, imported, backed up; and a server that wants a key.

use std::path::{Path, PathBuf};
use std::process::Output;

use forewarn_testkit::{ServeDir, TestServer, clean_command, server};

fn forewarn(words: &[&str]) -> Output {
    clean_command(crate::program()).args(words).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn dev(data: &Path) -> TestServer {
    let mut command = clean_command(crate::program());
    server::dev(&mut command, &["--clock", "frozen", "--data-dir", path(data)]);
    TestServer::spawn(crate::program(), command)
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path")
}

#[test]
fn a_backup_of_a_running_server_makes_another_one_with_the_brake_on() {
    let files = tempfile::tempdir().expect("a directory");
    let place = |name: &str| -> PathBuf { files.path().join(name) };
    let (data, copy, export, new, other) =
        (place("data"), place("copy"), place("export"), place("new"), place("other"));
    {
        let server = dev(&data);
        assert!(server.try_run(&["vm", "stop", "solo"]).status.success());
        let backed_up = server.try_run(&["backup", path(&copy)]);
        assert!(backed_up.status.success(), "{}", text(&backed_up.stderr));
        let again = server.try_run(&["backup", path(&copy)]);
        assert_eq!(again.status.code(), Some(1), "a backup replaces nothing");
        let busy = forewarn(&["store", "check", path(&data)]);
        assert_eq!(busy.status.code(), Some(1));
        assert!(text(&busy.stderr).contains("in use by another process"), "{}", text(&busy.stderr));
    }
    let checked = forewarn(&["store", "check", path(&data)]);
    assert!(text(&checked.stdout).contains("10 hosts, 6 tenants, 14 machines"), "{checked:?}");
    assert!(forewarn(&["store", "export", path(&data), path(&export)]).status.success());
    for (source, made) in [(&copy, &new), (&export, &other)] {
        let imported = forewarn(&["store", "import", path(source), path(made)]);
        assert!(imported.status.success(), "{}", text(&imported.stderr));
        let server = dev(made);
        let shown = text(&server.try_run(&["vm", "show", "solo", "--output", "json"]).stdout);
        assert!(shown.contains("\"stopped\""), "{shown}");
        let let_go = text(&server.try_run(&["brake", "off"]).stdout);
        assert!(!let_go.contains("already off"), "the brake was on: {let_go}");
    }
    let twice = forewarn(&["store", "import", path(&copy), path(&new)]);
    assert!(text(&twice.stderr).contains("a journal already exists"), "{}", text(&twice.stderr));
}

#[test]
fn a_server_on_tcp_wants_the_key_that_it_shows_once() {
    let files = ServeDir::new(crate::program(), "");
    let settings = "data_dir = 'DIR/data'\napi.listen = '127.0.0.1:0'\ndriver.kind = 'simulated'\n\
         [[metadata.listen]]\naddress = '127.0.0.1:0'\n";
    let key = {
        let server = files.start(settings);
        let key = server.key();
        assert!(key.starts_with("fwt_0_"), "{key}");
        let refused = server.try_run(&["vm", "ls"]);
        assert!(text(&refused.stderr).contains("the token is missing or invalid"), "{refused:?}");
        assert_eq!(server.try_run(&["--token", "fwt_0_0", "vm", "ls"]).status.code(), Some(1));
        assert!(server.try_run(&["--token", &key, "vm", "ls"]).status.success());
        key
    };
    let server = files.start(settings);
    assert!(!server.log().contains("fwt_"), "it is shown once: {}", server.log());
    assert!(server.try_run(&["--token", &key, "vm", "ls"]).status.success(), "and good for ever");
    let secret = key.rsplit('_').next().expect("a secret").as_bytes().to_vec();
    for file in ["journal.db", "journal.db-wal", "audit.db", "audit.db-wal"] {
        let kept = std::fs::read(files.file("data").join(file)).expect("a file");
        assert!(!kept.windows(secret.len()).any(|bytes| bytes == secret), "only its hash is kept: {file}");
    }
}
