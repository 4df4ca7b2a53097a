//! The command `forewarn-agent`; everything is in the library beside it.

fn main() -> std::process::ExitCode {
    forewarn_agent::main()
}
