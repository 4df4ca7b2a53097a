//! Data directories from outside: checked, exported, imported, backed up; and a server that wants a key.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

fn forewarn(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forewarn"));
    command.args(words).env_remove("FOREWARN_API").env_remove("FOREWARN_TOKEN");
    command.output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A server, ended with this.
struct Server {
    child: Child,
    api: String,
}

impl Server {
    fn start(files: &Path, words: &[&str]) -> Self {
        let addresses = files.join("addresses.json");
        drop(std::fs::remove_file(&addresses));
        let mut command = Command::new(env!("CARGO_BIN_EXE_forewarn"));
        let out = std::fs::File::create(files.join("out")).expect("a file");
        command.args(words).arg("--addresses-file").arg(&addresses).stdout(out);
        let mut child = command.spawn().expect("the program runs");
        let deadline = Instant::now() + Duration::from_secs(60);
        while !addresses.exists() {
            let ended = child.try_wait().expect("a child");
            assert!(ended.is_none() && Instant::now() < deadline, "it did not start: {ended:?}");
            std::thread::yield_now();
        }
        let written = std::fs::read(&addresses).expect("it is there");
        let addresses: serde_json::Value = serde_json::from_slice(&written).expect("it is whole");
        Self { child, api: addresses["api"].as_str().expect("an address").to_owned() }
    }

    fn run(&self, words: &[&str]) -> Output {
        forewarn(&[&["--api", &self.api], words].concat())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn dev(files: &Path, data: &Path) -> Server {
    let data = data.to_str().expect("a path");
    let ports = ["--metadata-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0", "--arm-listen", "off"];
    Server::start(files, &[&["dev", "--clock", "frozen", "--data-dir", data], &ports[..]].concat())
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
        let server = dev(files.path(), &data);
        assert!(server.run(&["vm", "stop", "solo"]).status.success());
        let backed_up = server.run(&["backup", path(&copy)]);
        assert!(backed_up.status.success(), "{}", text(&backed_up.stderr));
        let again = server.run(&["backup", path(&copy)]);
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
        let server = dev(files.path(), made);
        let shown = text(&server.run(&["vm", "show", "solo", "--output", "json"]).stdout);
        assert!(shown.contains("\"stopped\""), "{shown}");
        let let_go = text(&server.run(&["brake", "off"]).stdout);
        assert!(!let_go.starts_with("Already so"), "the brake was on: {let_go}");
    }
    let twice = forewarn(&["store", "import", path(&copy), path(&new)]);
    assert!(text(&twice.stderr).contains("there already is a journal"), "{}", text(&twice.stderr));
}

#[test]
fn a_server_on_tcp_wants_the_key_that_it_shows_once() {
    let files = tempfile::tempdir().expect("a directory");
    let config = files.path().join("config.toml");
    let data = files.path().join("data");
    let settings = format!(
        "data_dir = {data:?}\napi.listen = '127.0.0.1:0'\nhands.kind = 'pretend'\n\
         [[metadata.listen]]\naddress = '127.0.0.1:0'\n"
    );
    std::fs::write(&config, settings).expect("a file");
    let start = || Server::start(files.path(), &["serve", "--config", path(&config)]);
    let key = {
        let server = start();
        let shown = std::fs::read_to_string(files.path().join("out")).expect("a file");
        let key = shown.trim().rsplit(' ').next().expect("a key").to_owned();
        assert!(key.starts_with("fwt_0_"), "{shown}");
        let refused = server.run(&["vm", "ls"]);
        assert!(text(&refused.stderr).contains("the token is missing or wrong"), "{refused:?}");
        assert_eq!(server.run(&["--token", "fwt_0_0", "vm", "ls"]).status.code(), Some(1));
        assert!(server.run(&["--token", &key, "vm", "ls"]).status.success());
        key
    };
    let server = start();
    let shown = std::fs::read_to_string(files.path().join("out")).expect("a file");
    assert_eq!(shown, "", "it is shown once");
    assert!(server.run(&["--token", &key, "vm", "ls"]).status.success(), "and good for ever");
    let secret = key.rsplit('_').next().expect("a secret").as_bytes().to_vec();
    for file in ["journal.db", "journal.db-wal"] {
        let kept = std::fs::read(data.join(file)).expect("a file");
        assert!(!kept.windows(secret.len()).any(|bytes| bytes == secret), "only its hash is kept: {file}");
    }
}
