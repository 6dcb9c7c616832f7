//! Where there is no Unix: time passes, and nothing can be opened.

use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::iter;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_proto::config::SpawnPlan;
use mcp_proto::{IoFailure, LinkId};

use crate::engine::{Half, LinkExit};

pub(crate) type Fd = Infallible;
pub(crate) type Pair = Infallible;
type Written = Option<Result<Vec<u8>, IoFailure>>;

/// Never made.
#[derive(Debug)]
pub(crate) struct Link {
    never: Infallible,
    pub(crate) reading: bool,
}

#[rustfmt::skip] // one line for each thing that cannot happen
impl Link {
    pub(crate) fn adopt(pair: Pair) -> Result<Self, IoFailure> { match pair {} }
    pub(crate) fn watched(&self) -> iter::Empty<(Half, Fd)> { match self.never {} }
    pub(crate) fn read<'b>(&mut self, _: Half, _: &'b mut [u8]) -> Option<&'b [u8]> { match self.never {} }
    pub(crate) fn write(&mut self, _: Vec<u8>) -> Written { match self.never {} }
    pub(crate) fn flush(&mut self) -> Written { match self.never {} }
    pub(crate) fn close_input(&mut self) { match self.never {} }
    pub(crate) fn terminate(&self, _: bool) { match self.never {} }
    pub(crate) fn spawn(
        _: LinkId, _: &SpawnPlan, _: &Sender<LinkExit>, _: &Arc<Waker>,
    ) -> Result<Self, IoFailure> { Err(unsupported().into()) }
}

/// Ends the [`poll`] of another thread.
#[derive(Debug, Default)]
pub(crate) struct Waker {
    raised: Mutex<bool>,
    bell: Condvar,
}

impl Waker {
    #[allow(clippy::unnecessary_wraps)] // on Unix it can fail
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self::default())
    }

    pub(crate) fn raise(&self) {
        *self.raised() = true;
        self.bell.notify_all();
    }

    pub(crate) fn lower(&self) {
        *self.raised() = false;
    }

    fn raised(&self) -> MutexGuard<'_, bool> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn poll(
    waker: &Waker,
    _: &[(LinkId, Half, Fd)],
    timeout: Option<Duration>,
) -> (bool, Vec<bool>) {
    let timeout = timeout.unwrap_or(Duration::MAX);
    let sleep = |raised: &mut bool| !*raised;
    let waited = waker
        .bell
        .wait_timeout_while(waker.raised(), timeout, sleep);
    let (raised, _) = waited.unwrap_or_else(PoisonError::into_inner);
    (*raised, Vec::new())
}

pub(crate) fn pump(_: impl Read + Send, _: impl Write + Send) -> io::Result<Pair> {
    Err(unsupported())
}

fn unsupported() -> io::Error {
    let reason = "not supported on this platform yet: child processes and streams need Unix";
    io::Error::new(io::ErrorKind::Unsupported, reason)
}
