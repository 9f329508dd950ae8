//! The entry into the sandbox as a program of its own, for the tests.

fn main() -> std::process::ExitCode {
    baton_hooks::sandbox::enter_if_asked().unwrap_or(std::process::ExitCode::FAILURE)
}
