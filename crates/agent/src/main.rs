//! The program `forewarn-agent`.

fn main() -> std::process::ExitCode {
    forewarn_agent::main()
}
