//! One link at a time, without a core.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};

use mcp_proto::config::SpawnPlan;
use mcp_proto::{Exit, IoKind, LinkId, PeerId};

use super::{LONG, alone, among_others, children, descriptors, eventually, processes_with};
use crate::engine::{Half, LinkExit};
use crate::sys::{Link, Waker, poll};

const LINK: LinkId = LinkId {
    peer: PeerId::new(0),
    serial: 1,
};

fn plan(program: &str, args: &[&str]) -> SpawnPlan {
    SpawnPlan::new(program, args.iter().copied())
}

/// The channel ends when the child is reaped, and not before.
fn assert_reaped(exits: &Receiver<LinkExit>) {
    let reaped = Err(RecvTimeoutError::Disconnected);
    assert_eq!(exits.recv_timeout(LONG), reaped);
}

/// A link with everything that an engine would have around it.
struct Bench {
    link: Link,
    waker: Arc<Waker>,
    exits: Receiver<LinkExit>,
}

impl Bench {
    fn spawn(script: &str) -> Self {
        let (waker, (sender, exits)) = (Arc::new(Waker::new().unwrap()), mpsc::channel());
        let plan = plan("/bin/sh", &["-c", script]);
        let mut link = Link::spawn(LINK, &plan, &sender, &waker).unwrap();
        link.reading = true;
        Self { link, waker, exits }
    }

    fn ready(&self) -> Vec<Half> {
        let watches: Vec<(LinkId, Half, _)> = self
            .link
            .watched()
            .map(|(half, fd)| (LINK, half, fd))
            .collect();
        let (raised, ready) = poll(&self.waker, &watches, Some(LONG));
        assert!(raised || ready.contains(&true), "nothing happens");
        self.waker.lower();
        let ready = watches.iter().zip(ready).filter(|(_, ready)| *ready);
        ready.map(|((_, half, _), _)| *half).collect()
    }

    /// Reads and writes until `done` says so of what was read from the output and the errors.
    fn run(&mut self, mut done: impl FnMut(&[u8], &[u8], bool) -> bool) -> (Vec<u8>, Vec<u8>) {
        let (mut output, mut errors, mut ended) = (Vec::new(), Vec::new(), false);
        let mut buffer = vec![0; 64 * 1024];
        while !done(&output, &errors, ended) {
            for half in self.ready() {
                let into = match half {
                    Half::Input => {
                        let _ = self.link.flush();
                        continue;
                    }
                    Half::Output => &mut output,
                    Half::Errors => &mut errors,
                };
                match self.link.read(half, &mut buffer) {
                    Some(bytes) => into.extend_from_slice(bytes),
                    None => ended |= half == Half::Output,
                }
            }
        }
        (output, errors)
    }
}

/// More than the pipes of both directions hold, so both fill up on the way (R100).
#[test]
fn more_bytes_than_two_pipes_hold_come_back() {
    let _process = among_others();
    let mut bench = Bench::spawn("exec cat");
    let bytes: Vec<u8> = (0..1_000_003_u32)
        .map(|index| (index % 251) as u8)
        .collect();
    assert!(bench.link.write(bytes.clone()).is_none(), "it cannot fit");
    let (output, errors) = bench.run(|output, _, _| output.len() >= bytes.len());
    assert!(output == bytes, "changed on the way");
    assert_eq!(errors, b"");
}

#[test]
fn output_that_is_not_wanted_is_not_watched() {
    let _process = among_others();
    let mut bench = Bench::spawn("echo text; exec sleep 60");
    assert_eq!(bench.ready(), [Half::Output]);
    bench.link.reading = false;
    assert!(bench.link.watched().all(|(half, _)| half != Half::Output));
    bench.link.reading = true;
    let (output, _) = bench.run(|output, _, _| output.len() >= 5);
    assert_eq!(output, b"text\n");
}

/// The child never reads: closing its input must not wait for the bytes that it does not take.
#[test]
fn input_closes_while_a_write_is_outstanding() {
    let _process = among_others();
    let mut bench = Bench::spawn("exec sleep 60");
    assert!(bench.link.write(vec![b'x'; 1_000_000]).is_none());
    assert!(bench.link.watched().any(|(half, _)| half == Half::Input));
    bench.link.close_input();
    assert!(bench.link.watched().all(|(half, _)| half != Half::Input));
    let refused = bench.link.write(b"more".to_vec());
    assert_eq!(refused.unwrap().unwrap_err().kind, IoKind::BrokenPipe);
}

#[test]
fn a_write_to_a_child_that_closed_its_input_fails() {
    let _process = among_others();
    let mut bench = Bench::spawn("exec 0<&-; echo closed; exec sleep 60");
    bench.run(|output, _, _| output == b"closed\n");
    let failed = bench.link.write(b"x".to_vec());
    assert_eq!(failed.unwrap().unwrap_err().kind, IoKind::BrokenPipe);
}

/// Ten megabytes of noise, then an answer (R100: standard error is always drained).
#[test]
fn a_flood_on_standard_error_does_not_block_the_answer() {
    let _process = among_others();
    let mut bench = Bench::spawn("head -c 10000000 /dev/zero >&2; echo answer");
    let mut noise = 0;
    let (output, _) = bench.run(|_, errors, ended| {
        noise = errors.len();
        ended && noise >= 10_000_000
    });
    assert_eq!((output.as_slice(), noise), (&b"answer\n"[..], 10_000_000));
}

#[test]
fn exits_are_told_apart() {
    let _process = among_others();
    for (script, expected) in [
        ("exit 7", Exit::Code(7)),
        ("kill -KILL $$", Exit::Signal(9)),
        ("kill -SEGV $$", Exit::Signal(11)),
    ] {
        let bench = Bench::spawn(script);
        assert_eq!(bench.exits.recv_timeout(LONG).unwrap(), (LINK, expected));
    }
}

/// The child sees the plan's variables and nothing of ours (R100).
#[test]
fn the_environment_is_the_plans_alone() {
    let _process = among_others();
    assert!(
        std::env::var_os("PATH").is_some(),
        "there is something to inherit"
    );
    let mut bench = Bench::spawn("exec /usr/bin/env");
    let (output, _) = bench.run(|_, _, ended| ended);
    let names = String::from_utf8(output).unwrap();
    let own = names
        .lines()
        .filter(|line| !line.starts_with("PWD=") && !line.starts_with("_="));
    let own: Vec<_> = own.filter(|line| !line.starts_with("SHLVL=")).collect();
    assert_eq!(own, Vec::<&str>::new());
}

#[test]
fn asking_to_end_can_be_ignored_and_killing_cannot() {
    let _process = among_others();
    let mut bench = Bench::spawn("trap 'echo no' TERM; echo ready; while :; do sleep 0.01; done");
    bench.run(|output, _, _| output == b"ready\n");
    bench.link.terminate(false);
    bench.run(|output, _, _| output == b"no\n");
    bench.link.terminate(true);
    assert_eq!(bench.exits.recv_timeout(LONG).unwrap().1, Exit::Signal(9));
}

/// A child, its child in the same group, and no handle is left (R100: no zombies, no orphans).
#[test]
fn releasing_kills_the_group_and_reaps() {
    let _process = alone();
    let mut bench = Bench::spawn("sleep 61.5 & echo started; wait");
    bench.run(|output, _, _| output == b"started\n");
    assert!(!processes_with("61.5").is_empty());
    let Bench { link, exits, .. } = bench;
    drop(link);
    assert_eq!(exits.recv_timeout(LONG).unwrap().1, Exit::Signal(9));
    assert_reaped(&exits);
    eventually("the grandchild is gone", || {
        processes_with("61.5").is_empty()
    });
    assert_eq!(children(), Vec::<String>::new());
}

/// The leader has ended and is a zombie; its group is killed all the same.
#[test]
fn the_group_of_a_process_that_has_ended_is_killed() {
    let _process = among_others();
    let mut bench = Bench::spawn("sleep 62.5 >/dev/null 2>&1 & echo started");
    bench.run(|output, _, _| output == b"started\n");
    assert_eq!(bench.exits.recv_timeout(LONG).unwrap().1, Exit::Code(0));
    assert!(!processes_with("62.5").is_empty());
    drop(bench);
    eventually("the grandchild is gone", || {
        processes_with("62.5").is_empty()
    });
}

/// A grandchild in a session of its own keeps our pipes open. Nothing waits for it, and our ends close.
#[test]
fn a_grandchild_in_its_own_session_holds_nothing_up() {
    let _process = alone();
    let before = descriptors();
    let mut bench = Bench::spawn("setsid sh -c 'echo $$; exec sleep 1000' & read go");
    let (said, _) = bench.run(|output, _, _| output.ends_with(b"\n"));
    let number = str::from_utf8(&said).unwrap().trim().parse().unwrap();
    assert!(matches!(bench.link.write(b"go\n".to_vec()), Some(Ok(_))));
    assert_eq!(bench.exits.recv_timeout(LONG).unwrap().1, Exit::Code(0));
    let Bench { link, exits, waker } = bench;
    drop(link);
    assert_reaped(&exits);
    drop(waker);
    assert_eq!(descriptors(), before);
    // It is out of reach, and nobody has waited for it. (Were it gone, this would fail.)
    let grandchild = rustix::process::Pid::from_raw(number).unwrap();
    rustix::process::kill_process(grandchild, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn a_missing_program_leaves_nothing_behind() {
    let _process = alone();
    let before = descriptors();
    let (waker, (sender, exits)) = (Arc::new(Waker::new().unwrap()), mpsc::channel());
    let failed = Link::spawn(LINK, &plan("/no/such/program", &[]), &sender, &waker);
    assert_eq!(failed.unwrap_err().kind, IoKind::NotFound);
    drop((sender, waker));
    assert_reaped(&exits);
    assert_eq!(descriptors(), before);
    assert_eq!(children(), Vec::<String>::new());
}

/// The other side sees the end although our reading half keeps the socket open.
#[test]
fn closing_the_input_of_a_socket_ends_it_for_the_other_side() {
    let _process = among_others();
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let mut link = Link::adopt((ours.try_clone().unwrap().into(), ours.into())).unwrap();
    assert!(matches!(link.write(b"last words".to_vec()), Some(Ok(_))));
    link.close_input();
    let mut heard = String::new();
    std::io::Read::read_to_string(&mut theirs, &mut heard).unwrap();
    assert_eq!(heard, "last words");
}

/// Raised before, during and between polls, always seen, and taken back.
#[test]
fn a_waker_wakes_once_for_many_raises() {
    let _process = among_others();
    let waker = Waker::new().unwrap();
    let polled = |timeout| poll(&waker, &[], Some(timeout)).0;
    assert!(!polled(std::time::Duration::ZERO));
    waker.raise();
    waker.raise();
    assert!(polled(LONG));
    waker.lower();
    assert!(!polled(std::time::Duration::ZERO));
    std::thread::scope(|scope| {
        scope.spawn(|| waker.raise());
        assert!(polled(LONG));
    });
}
