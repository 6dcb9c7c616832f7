//! The driver suite: what every driver must do, whoever wrote it, proved against real processes.
//!
//! A driver is adapted by implementing [`Driver`] and [`Session`]; both are synchronous, and an async
//! driver uses its runtime's `block_on`. Then [`driver_suite!`](crate::driver_suite) makes one test of each
//! [`Scenario`], or [`run`] runs them all and says what failed.
//!
//! Scenarios assert on values and on the process table, never on how long something took, except that
//! nothing may take for ever. They run on Linux, because they read `/proc`.
//!
//! ```ignore
//! struct Mine;
//! impl conformance::suite::Driver for Mine { /* … */ }
//!
//! conformance::driver_suite!(&Mine, Environment::new(env!("CARGO_BIN_EXE_conformance-server")));
//! ```

mod books;
mod calling;
mod closing;
mod connecting;
mod ending;
mod expect;
mod hostile;
mod listing;
pub(crate) mod place;
mod pressure;
pub(crate) mod process;
mod spawning;
pub(crate) mod stage;
mod streaming;
mod streams;

use std::fmt;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use mcp_proto::{
    Config, Diagnosis, Ended, Error, Identity, Notification, Operation, OperationId,
    ProgressUpdate, Report,
};

use stage::Stage;

/// Makes clients.
pub trait Driver: Sync {
    /// A name for messages.
    fn name(&self) -> String;

    /// Begins to connect a client and returns without waiting for its servers.
    ///
    /// # Errors
    /// Why there is no client at all. A server that cannot be reached is no reason.
    fn connect(&self, setup: Setup) -> Result<Box<dyn Session>, String>;
}

/// What a client is made of.
#[derive(Debug)]
#[non_exhaustive]
pub struct Setup {
    /// The peers and their settings. Variables and programs are to be looked up on this host.
    pub config: Config,
    /// Who the application is.
    pub identity: Identity,
    /// The streams for peers whose transport is [`Stream`](mcp_proto::config::Transport::Stream), each
    /// under the name of its peer.
    pub streams: Vec<(String, UnixStream)>,
}

/// One client. All of it may be used from several threads at once. Dropping it without
/// [`close`](Self::close) must kill every process.
pub trait Session: Send + Sync {
    /// Starts an operation.
    ///
    /// # Errors
    /// It was not accepted.
    fn submit(&self, operation: Operation) -> Result<OperationId, Error>;

    /// Waits until the operation has ended, but no longer than `max`. Its end is given out once.
    fn wait(&self, operation: OperationId, max: Duration) -> Option<Ended>;

    /// Cancels an operation.
    fn cancel(&self, operation: OperationId);

    /// Ends a [`Listen`](mcp_proto::Request::Listen) operation with its count.
    fn finish(&self, operation: OperationId);

    /// The notifications of a [`Listen`](mcp_proto::Request::Listen) operation that were not taken yet;
    /// waits for the first one, but no longer than `max`. Empty when the listening has ended.
    fn notifications(&self, operation: OperationId, max: Duration) -> Vec<Notification>;

    /// Once [`wait`](Self::wait) gave the operation's end: the progress reports that came before it,
    /// oldest first.
    fn progress(&self, operation: OperationId) -> Vec<ProgressUpdate>;

    /// Once [`wait`](Self::wait) gave the end of a streamed call: the text that its updates gave.
    fn text(&self, operation: OperationId) -> String;

    /// The startup report.
    fn report(&self) -> Report;

    /// What is known about each peer.
    fn diagnoses(&self) -> Vec<Diagnosis>;

    /// Closes the client and returns when nothing is left of it. The second time there is nothing to do.
    fn close(&self);
}

/// Where the suite runs.
#[derive(Clone, Debug)]
pub struct Environment {
    server: PathBuf,
    pub(crate) scratch: PathBuf,
}

impl Environment {
    /// `server` is a program that takes `--script-json SCRIPT` and is a
    /// [fake server](crate::fake_server) of that script: `conformance-server` of this package, or
    /// `fake-server`.
    pub fn new(server: impl Into<PathBuf>) -> Self {
        Self {
            server: server.into(),
            scratch: std::env::temp_dir(),
        }
    }

    /// Puts files here, each scenario in a directory of its own that it removes. Default: the system's
    /// directory for temporary files.
    #[must_use]
    pub fn with_scratch(mut self, directory: impl Into<PathBuf>) -> Self {
        self.scratch = directory.into();
        self
    }
}

/// One thing that every driver must get right.
#[derive(Clone, Copy)]
pub struct Scenario {
    name: &'static str,
    act: fn(&Stage<'_>),
}

impl Scenario {
    /// Its name: a sentence.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Runs it.
    ///
    /// # Panics
    /// When the driver does not do what it must, with the reason.
    pub fn run(&self, driver: &dyn Driver, environment: &Environment) {
        /// Scenarios that count what belongs to the whole process run alone.
        static ALONE: RwLock<()> = RwLock::new(());
        let stage = Stage::new(self.name, driver, environment);
        if ALONE_NAMES.contains(&self.name) {
            let _alone = ALONE.write().unwrap_or_else(PoisonError::into_inner);
            (self.act)(&stage);
        } else {
            let _shared = ALONE.read().unwrap_or_else(PoisonError::into_inner);
            (self.act)(&stage);
        }
    }
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scenario").field(&self.name).finish()
    }
}

/// What came of a whole suite.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The driver's name.
    pub driver: String,
    /// The names of the scenarios that passed.
    pub passed: Vec<&'static str>,
    /// The names of the others, with the reasons.
    pub failed: Vec<(&'static str, String)>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.passed.len() + self.failed.len();
        write!(
            f,
            "{}: {} of {total} passed",
            self.driver,
            self.passed.len()
        )?;
        for (name, reason) in &self.failed {
            write!(f, "\n  {name}: {reason}")?;
        }
        Ok(())
    }
}

/// Runs every scenario, one after another.
pub fn run(driver: &dyn Driver, environment: &Environment) -> Outcome {
    let mut outcome = Outcome {
        driver: driver.name(),
        passed: Vec::new(),
        failed: Vec::new(),
    };
    for scenario in all() {
        let attempt = AssertUnwindSafe(|| scenario.run(driver, environment));
        match catch_unwind(attempt) {
            Ok(()) => outcome.passed.push(scenario.name),
            Err(panic) => outcome
                .failed
                .push((scenario.name, crate::panic_text(&*panic))),
        }
    }
    outcome
}

/// Every scenario.
#[must_use]
pub const fn all() -> &'static [Scenario] {
    ALL
}

/// The scenarios that count what belongs to the whole process.
const ALONE_NAMES: [&str; 1] = ["twenty_lives_leak_neither_descriptors_nor_threads"];

/// One list makes [`all`] and the macro that makes a test of each scenario.
macro_rules! scenarios {
    ($d:tt $($module:ident { $($name:ident,)* })*) => {
        const ALL: &[Scenario] = &[
            $($(Scenario { name: stringify!($name), act: $module::$name },)*)*
        ];

        /// Makes a `#[test]` of every scenario of the [driver suite](crate::suite), for a driver (a
        /// `&dyn Driver`) in an [`Environment`](crate::suite::Environment).
        #[macro_export]
        macro_rules! driver_suite {
            ($d driver:expr, $d environment:expr) => {
                $($(
                    #[test]
                    fn $name() {
                        $d crate::suite::run_named(stringify!($name), $d driver, &$d environment);
                    }
                )*)*
            };
        }
    };
}

/// Runs the scenario of this name.
///
/// # Panics
/// When it fails, or when there is none.
pub fn run_named(name: &str, driver: &dyn Driver, environment: &Environment) {
    let scenario = all().iter().find(|scenario| scenario.name == name);
    let scenario = scenario.unwrap_or_else(|| panic!("no scenario is named {name}"));
    scenario.run(driver, environment);
}

scenarios! { $
    connecting {
        peers_of_every_revision_settle_and_the_report_says_how,
        a_legacy_server_is_not_greeted_unless_it_is_allowed,
        what_cannot_be_started_fails_alone,
        a_server_that_exits_at_once_is_quoted,
        operations_may_be_submitted_before_anything_is_settled,
        twenty_lives_leak_neither_descriptors_nor_threads,
    }
    books {
        what_calls_cost_is_written_and_read_again,
        a_ledger_that_cannot_be_had_fails_no_call,
    }
    calling {
        results_arrive_in_both_eras,
        every_type_of_content_arrives,
        errors_of_tools_and_of_servers_are_told_apart,
        an_unknown_tool_is_not_sent,
        an_input_request_is_answered_by_a_second_call,
        progress_increases_and_precedes_the_end,
    }
    listing {
        lists_have_all_pages,
        resources_prompts_and_completions_arrive,
        a_listener_hears_of_changes_until_it_finishes,
    }
    pressure {
        sixty_four_calls_are_answered_out_of_order,
        a_result_of_four_megabytes_arrives,
        an_argument_of_four_megabytes_arrives,
        both_pipes_may_be_full_at_once,
        a_server_that_stops_reading_while_it_writes_blocks_nobody,
        a_flood_on_standard_error_blocks_no_call,
        notifications_that_nobody_takes_block_no_other_peer,
    }
    ending {
        cancelling_from_another_thread_wakes_whoever_waits,
        silence_ends_at_the_idle_timeout,
        progress_extends_the_idle_timeout_only,
        a_server_killed_during_a_call_ends_the_call_at_once,
        a_server_that_exits_during_a_call_says_how,
    }
    streaming {
        a_streamed_text_adds_up,
        a_stream_outlives_its_server,
        cancelling_a_stream_keeps_its_text,
    }
    hostile {
        noise_before_the_first_message_is_tolerated,
        noise_after_the_first_message_degrades,
        hostile_peers_do_not_touch_a_good_one,
    }
    closing {
        a_server_that_ends_by_itself_is_reaped,
        a_child_that_ignores_the_end_of_input_is_terminated,
        a_child_that_ignores_sigterm_is_killed,
        the_end_of_input_comes_before_any_signal,
        sigterm_comes_before_sigkill,
        a_grandchild_that_holds_the_pipes_is_killed,
        a_grandchild_in_its_own_session_delays_nothing,
        pending_calls_end_before_the_servers_do,
        closing_twice_and_from_two_threads_is_closing_once,
        closing_while_connecting_leaves_nothing,
        dropping_the_client_kills_everything,
    }
    spawning {
        the_child_sees_only_allowed_variables,
        arguments_and_directory_arrive_exactly,
        a_relative_command_is_found_on_path,
    }
    streams {
        a_ready_stream_is_a_peer_like_any_other,
        a_stream_that_ends_ends_its_calls,
        a_stream_is_shut_down_when_the_client_closes,
    }
}
