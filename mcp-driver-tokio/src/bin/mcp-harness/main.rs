//! `mcp-harness`: the client on the command line.
//!
//! Everything that a command prints on standard output is its result; what concerns people only goes to
//! standard error. With `--json` standard output is one JSON document, also when the command fails.

mod args;
mod batch;
mod call;
mod demo;
mod doctor;
mod exit;
mod fake;
mod files;
mod interrupt;
mod lists;
mod output;
mod program;
mod questions;
mod session;
mod setup;

use std::process::ExitCode;

use mcp_proto::{Config, Request};

use args::{Cli, Command, Global};
use call::Next;
use exit::{Exit, Failure};
use interrupt::Interrupt;
use session::Session;

fn main() -> ExitCode {
    let Cli { global, command } = match args::parse() {
        Ok(cli) => cli,
        Err(failure) => return end(&failure, args::asks_for_json()),
    };
    let is_batch = matches!(command, Command::Batch);
    program::remember(global.config.as_deref(), is_batch);
    let done = match command {
        // Nothing goes before it: it may be a child of its own that has to do one thing only.
        Command::FakeServer(options) => fake::run(options),
        command => run(&global, command).map(ExitCode::from),
    };
    let code = done.unwrap_or_else(|failure| end(&failure, global.json));
    if output::complain_of_loss() {
        return Exit::CallFailed.into();
    }
    code
}

/// Says why nothing came of the command. Whoever interrupted it knows, but not what that left behind.
fn end(failure: &Failure, to_program: bool) -> ExitCode {
    if to_program || failure.exit != Exit::Interrupted || failure.may_have_executed() {
        output::failure(failure, to_program);
    }
    failure.exit.into()
}

fn run(global: &Global, command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Demo => demo::run(global),
        Command::Report => listed(global, |session, _| lists::report(session, global)),
        Command::Tools => list(global, Request::ListTools),
        Command::Resources { templates: false } => list(global, Request::ListResources),
        Command::Resources { templates: true } => list(global, Request::ListResourceTemplates),
        Command::Prompts => list(global, Request::ListPrompts),
        Command::Call(options) => {
            let arguments = setup::object(options.arguments.as_deref())?;
            match call::prepare(&options, arguments)? {
                (Next::Make(operation), call) => connected(global, |session, _| {
                    call::tool(session, global, &options, *operation, call)
                }),
                (Next::Ask(asked), call) => call::ask_again(global, &options, &asked, call),
            }
        }
        Command::Read { uri } => connected(global, |session, _| call::read(session, global, uri)),
        Command::Prompt { name, arguments } => {
            let arguments = setup::texts(arguments.as_deref())?;
            connected(global, |session, _| {
                call::prompt(session, global, name, arguments)
            })
        }
        Command::Doctor => {
            let config = setup::config(global)?;
            setup::warn_of_nothing(global, &config);
            let started = doctor::started(&config);
            with_config(global, config, |session, names| {
                doctor::run(session, global, names, &started)
            })
        }
        Command::Batch => {
            let config = setup::config(global)?;
            setup::warn_of_nothing(global, &config);
            batch::run(config, global.driver)
        }
        // `main` has taken it.
        Command::FakeServer(options) => fake::run(options).map(|_| Exit::Good),
    }
}

/// Starts the configured servers, does something with them, and closes them whatever came of it.
fn connected(
    global: &Global,
    work: impl FnOnce(&dyn Session, &[String]) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let config = setup::config(global)?;
    if !config.disabled.is_empty() {
        // Otherwise the error says that none is configured.
        setup::warn_of_nothing(global, &config);
    }
    with_config(global, config, work)
}

fn list(global: &Global, request: Request) -> Result<Exit, Failure> {
    listed(global, |session, names| {
        lists::list(session, global, names, request)
    })
}

/// The same, for what shows little when there is no server: it says so.
fn listed(
    global: &Global,
    work: impl FnOnce(&dyn Session, &[String]) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let config = setup::config(global)?;
    setup::warn_of_nothing(global, &config);
    with_config(global, config, work)
}

fn with_config(
    global: &Global,
    config: Config,
    work: impl FnOnce(&dyn Session, &[String]) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let names: Vec<String> = config.peers.iter().map(|peer| peer.name.clone()).collect();
    let interrupt = Interrupt::install()?;
    let session = session::open(config, global.driver, &interrupt)?;
    let done = work(session.as_ref(), &names);
    session.close();
    session::note_costs(session.as_ref());
    match done {
        Ok(exit) => Ok(interrupt.exit(exit)),
        Err(failure) if interrupt.is_hit() => Err(failure.interrupted()),
        Err(failure) => Err(failure),
    }
}
