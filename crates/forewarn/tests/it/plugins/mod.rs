//! The plugins for test runners, with pytest, `node --test` and Jest, and the files of the guide *In CI*.
//!
//! `cargo xtask plugins` installs the runners, and says in `FOREWARN_PYTEST` and `FOREWARN_JEST` where they are. Everything
//! runs in a copy: runners and build tools leave files beside what they read.

mod page;

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use forewarn_testkit::{TestDir, clean_command};

use self::page::Page;

/// The environment of pytest.
fn python() -> PathBuf {
    let place = env::var_os("FOREWARN_PYTEST").expect("`cargo xtask plugins` says where pytest is");
    PathBuf::from(place)
}

/// The environment of Jest, where that could be installed.
fn jest() -> Option<PathBuf> {
    let place = env::var_os("FOREWARN_JEST").map(PathBuf::from);
    if place.is_none() {
        eprintln!("SKIPPED: Jest is not installed");
    }
    place
}

fn plugins() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins")
}

/// A directory of one test, with what a user has installed: the program, and the plugins.
struct Workplace {
    directory: TestDir,
}

impl Workplace {
    fn new() -> Self {
        let directory = TestDir::new();
        fs::create_dir_all(directory.file("bin")).unwrap();
        symlink(fs::canonicalize(crate::program()).unwrap(), directory.file("bin/forewarn")).unwrap();
        Self { directory }
    }

    fn path(&self) -> PathBuf {
        self.directory.file("")
    }

    /// Installs the plugin for pytest as pip does it for a user, but without the network.
    fn install_pytest_plugin(&self) {
        copy(&plugins().join("pytest"), &self.directory.file("pytest"));
        let mut pip = self.command(python().join("bin/pip"));
        pip.args(["install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target"]);
        run(pip.arg(self.directory.file("site")).arg(self.directory.file("pytest")));
    }

    /// Puts the package for JavaScript where npm would put it, and Jest beside it.
    fn install_node_packages(&self, project: &Path) {
        let modules = project.join("node_modules");
        fs::create_dir_all(&modules).unwrap();
        fs::write(project.join("package.json"), "{}\n").unwrap();
        copy(&plugins().join("javascript"), &modules.join("forewarn-test"));
        if let Some(jest) = jest() {
            symlink(jest.join("node_modules/jest"), modules.join("jest")).unwrap();
            symlink(jest.join("node_modules/.bin"), modules.join(".bin")).unwrap();
        }
    }

    /// A command with both plugins and the program, and without settings of the caller.
    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = clean_command(program.as_ref().as_os_str());
        let path = env::var("PATH").unwrap_or_default();
        let own = [self.directory.file("bin"), python().join("bin")];
        let path = own.iter().map(|place| place.display().to_string()).chain([path]).collect::<Vec<_>>();
        command.env("PATH", path.join(":")).env("PYTHONPATH", self.directory.file("site"));
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTEST_ADDOPTS", "-p no:cacheprovider");
        command.env("NO_COLOR", "1").env_remove("FORCE_COLOR").env_remove("CI");
        command.current_dir(self.path()).stdin(Stdio::null());
        command
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in from.read_dir().unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Runs a command that has to succeed; gives both streams.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|problem| panic!("{command:?}: {problem}"));
    let text = both_streams(&output);
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    text
}

fn both_streams(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
#[ignore = "needs pytest; `cargo xtask plugins` installs it"]
fn the_plugin_for_pytest_passes_its_tests() {
    let place = Workplace::new();
    place.install_pytest_plugin();
    let mut tests = place.command("python3");
    tests.args(["-m", "pytest", "-q"]).current_dir(place.directory.file("pytest"));
    let said = run(&mut tests);
    assert!(said.contains(" passed") && !said.contains("skipped"), "{said}");
}

#[test]
#[ignore = "needs node; `cargo xtask plugins` installs it"]
fn the_package_for_javascript_passes_its_tests() {
    let place = Workplace::new();
    copy(&plugins().join("javascript"), &place.directory.file("javascript"));
    let mut tests = place.command("sh");
    tests.args(["-c", "node --test test/*.test.js"]).current_dir(place.directory.file("javascript"));
    let said = run(&mut tests);
    assert!(said.contains("# fail 0\n") && !said.contains("# tests 0\n"), "{said}");
}

#[test]
#[ignore = "needs Jest; `cargo xtask plugins` installs it"]
fn the_package_for_javascript_works_in_jest() {
    let Some(jest) = jest() else { return };
    let place = Workplace::new();
    copy(&plugins().join("javascript"), &place.directory.file("javascript"));
    let run_jest = |fails: &str| {
        let mut tests = place.command("node");
        tests
            .arg(jest.join("node_modules/jest/bin/jest.js"))
            .args(["--testMatch", "**/test/jest/*.test.cjs"]);
        tests.current_dir(place.directory.file("javascript")).env("FOREWARN_FAIL", fails);
        tests.output().unwrap()
    };
    let passed = run_jest("");
    assert!(passed.status.success(), "{}", both_streams(&passed));
    let failed = run_jest("1");
    let said = both_streams(&failed);
    assert_eq!(failed.status.code(), Some(1), "{said}");
    assert!(said.contains("1 failed, 3 passed"), "{said}");
    for part in ["--- Forewarn verdict ---", "--- Forewarn audit log ---", "Reboot of svc"] {
        assert!(said.contains(part), "{part} is missing: {said}");
    }
}

#[test]
#[ignore = "needs TypeScript; `cargo xtask plugins` installs it"]
fn the_types_for_javascript_are_valid() {
    let Some(jest) = jest() else { return };
    let place = Workplace::new();
    place.install_node_packages(&place.path());
    let check = |text: &str| {
        fs::write(place.directory.file("use.mts"), text).unwrap();
        let mut compiler = place.command("node");
        compiler.arg(jest.join("node_modules/typescript/bin/tsc"));
        compiler.args(["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "use.mts"]);
        compiler.output().unwrap()
    };
    let valid = check(
        r#"import { startForewarn, type ForewarnEvent } from "forewarn-test";
           const forewarn = await startForewarn({ fleet: { host: [{ name: "h1" }] }, enrolled: true });
           const event: ForewarnEvent = await forewarn.announce("Reboot");
           const none: ForewarnEvent | null = await forewarn.announce("Reboot", "a", { requireNotice: false });
           await forewarn.wait({ approved: event, timeout: "10s" });
           const later: Date = await forewarn.clock.advance("15m");
           export { none, later };"#,
    );
    assert!(valid.status.success(), "{}", both_streams(&valid));
    let invalid = check(
        r#"import { startForewarn } from "forewarn-test";
           await (await startForewarn()).announce("Restart");
           export {};"#,
    );
    assert!(both_streams(&invalid).contains("\"Restart\""), "{}", both_streams(&invalid));
}

#[test]
#[ignore = "needs pytest; `cargo xtask plugins` installs it"]
fn the_guide_leads_to_a_failing_and_a_passing_test_in_python() {
    let place = Workplace::new();
    place.install_pytest_plugin();
    Page::read().section("From an empty directory").follow(&place);
}

/// The script of the action, with the variables that it gets from GitHub.
#[test]
#[ignore = "needs python3; `cargo xtask plugins` installs it"]
fn the_action_for_github_tests_the_service_of_the_guide() {
    let place = Workplace::new();
    Page::read().section("From an empty directory").write_files(&place);
    let mut script = place.command(plugins().join("github-action/test.sh"));
    script.env("INPUT_COMMAND", "exec python3 service.py").env("INPUT_EVENTS", "Reboot\nRedeploy");
    script.env("INPUT_OPTIONS", "--patience 5s").env("INPUT_REPORT", "maintenance.xml");
    let said = run(&mut script);
    assert!(said.contains("drained before Reboot") && said.contains("drained before Redeploy"), "{said}");
    assert!(place.directory.read("maintenance.xml").contains("<testsuite"));
}

#[test]
#[ignore = "needs pytest; `cargo xtask plugins` installs it"]
fn the_recipe_for_pytest_passes() {
    let place = Workplace::new();
    place.install_pytest_plugin();
    Page::read().section("From an empty directory").write_files(&place);
    Page::read().section("pytest").follow(&place);
}

#[test]
#[ignore = "needs Jest; `cargo xtask plugins` installs it"]
fn the_recipe_for_jest_passes() {
    let Some(_) = jest() else { return };
    let place = Workplace::new();
    place.install_node_packages(&place.path());
    Page::read().section("Jest and node").follow(&place);
}
