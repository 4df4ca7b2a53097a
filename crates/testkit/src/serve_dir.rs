//! A directory with a fleet and settings for `forewarn serve`.

use std::ffi::OsString;
use std::ops::Deref;
use std::process::{Command, Output};

use crate::command::{clean_command, stdout_of};
use crate::{TestDir, TestServer};

/// One host with one VM.
pub const SOLO_FLEET: &str = "host = [{ name = 'h1' }]\nvm = [{ name = 'solo', host = 'h1' }]\n";

/// Servers on the same directory continue each other's data. `api.sock` is the socket of operators, if the settings have one.
#[derive(Debug)]
pub struct ServeDir {
    dir: TestDir,
    program: OsString,
}

impl ServeDir {
    /// The file `fleet.toml` gets that text.
    pub fn new(program: OsString, fleet: &str) -> Self {
        Self::with_dir(TestDir::new(), program, fleet)
    }

    pub fn with_dir(dir: TestDir, program: OsString, fleet: &str) -> Self {
        dir.write("fleet.toml", fleet);
        Self { dir, program }
    }

    /// The program, whose user has a home here and has set nothing.
    pub fn command(&self) -> Command {
        let mut command = clean_command(&self.program);
        command.env("XDG_STATE_HOME", self.file("state"));
        command
    }

    /// `forewarn serve` with those settings, in which `DIR` is this directory.
    pub fn serve(&self, settings: &str) -> Command {
        let mut command = self.command();
        command.args(["serve", "--config", &self.configure("config.toml", settings)]);
        command
    }

    pub fn start(&self, settings: &str) -> TestServer {
        self.spawn(self.serve(settings))
    }

    pub fn spawn(&self, command: Command) -> TestServer {
        TestServer::spawn(self.program.clone(), command)
    }

    fn operator(&self, words: &[&str]) -> Command {
        let mut command = self.command();
        command.args(["--api", &format!("unix:{}", self.path("api.sock"))]).args(words);
        command
    }

    /// A command of an operator through the socket.
    pub fn run(&self, words: &[&str]) -> Output {
        self.operator(words).output().unwrap()
    }

    /// The same for one that has to succeed; gives its output.
    pub fn out(&self, words: &[&str]) -> String {
        stdout_of(&mut self.operator(words))
    }

    /// Issues a token with the words that follow `token create`; gives its text.
    pub fn token(&self, words: &str) -> String {
        let words: Vec<_> = ["token", "create"].into_iter().chain(words.split(' ')).collect();
        let text = self.out(&words).trim_end().to_owned();
        assert!(text.starts_with("fwt_") && !text.contains('\n'), "the text and nothing else: {text}");
        text
    }
}

impl Deref for ServeDir {
    type Target = TestDir;

    fn deref(&self) -> &TestDir {
        &self.dir
    }
}

/// Declares a type for the [`ServeDir`] of a group of tests, to which they can add methods.
#[macro_export]
macro_rules! serve_dir {
    ($name:ident) => {
        pub(crate) struct $name($crate::ServeDir);

        impl ::std::ops::Deref for $name {
            type Target = $crate::ServeDir;

            fn deref(&self) -> &$crate::ServeDir {
                &self.0
            }
        }
    };
}
