//! `batch`: operations as JSON Lines, over one set of connections.
//!
//! Standard input is read ahead on a thread of its own. The main thread starts the operations in their
//! order and waits for those in the foreground; each one in the background has a thread that waits for
//! it. Whoever has a line writes it, under one lock.

mod input;
mod job;
mod output;
mod run;
mod timer;
mod tracker;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mcp_proto::Config;

use crate::args::Driver;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::session::{self, Deadlines};

use input::Input;
use output::Output;
use run::{Batch, Shared};
use timer::Timer;
use tracker::Tracker;

/// Runs operations until the end of input.
pub(crate) fn run(config: Config, driver: Driver) -> Result<Exit, Failure> {
    let deadlines = Deadlines::of(&config);
    let interrupt = Interrupt::install()?;
    let session = session::open(config, driver, &interrupt)?;
    let shared = Arc::new(Shared {
        timer: Timer::start()
            .map_err(|error| Failure::exhausted(format!("no thread can be started: {error}")))?,
        session,
        input: Input::default(),
        output: Output::default(),
        tracker: Tracker::default(),
        deadlines,
        malformed: AtomicBool::new(false),
    });
    let other = Arc::clone(&shared);
    interrupt.on_hit(move || {
        other.stop();
        // All lines that were read are being answered; that may be many.
        other.output.wait_until_still();
    });
    let exit = Batch::new(Arc::clone(&shared)).run();
    session::note_costs(shared.session.as_ref());
    Ok(interrupt.exit(exit))
}
