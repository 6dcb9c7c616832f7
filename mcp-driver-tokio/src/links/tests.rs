//! The links alone, against real processes: no core decides anything here (R100).

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, process as std_process};

use mcp_proto::config::{Secret, SpawnPlan};
use mcp_proto::{Exit, IoKind, PeerId};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::*;

/// Longer than anything here takes; it only turns a hanging test into a failing one.
const PATIENCE: Duration = Duration::from_secs(20);

const LINK: LinkId = LinkId {
    peer: PeerId::new(0),
    serial: 1,
};

/// A fact, owned.
#[derive(Debug, PartialEq)]
enum Fact {
    Opened,
    Failed(IoFailure),
    Data(Vec<u8>),
    Stderr(usize),
    StderrEnded,
    Written,
    WriteFailed(IoKind),
    Ended,
    Exited(Exit),
}

impl From<Event<'_>> for Fact {
    fn from(event: Event<'_>) -> Self {
        match event {
            Event::LinkOpened { .. } => Self::Opened,
            Event::LinkFailed { failure, .. } => Self::Failed(failure),
            Event::LinkData { bytes, .. } => Self::Data(bytes.to_vec()),
            Event::LinkStderr { bytes, .. } => Self::Stderr(bytes.len()),
            Event::LinkStderrEnded { .. } => Self::StderrEnded,
            Event::LinkWritten { spent, .. } => {
                assert!(spent.is_empty());
                Self::Written
            }
            Event::LinkWriteFailed { failure, .. } => Self::WriteFailed(failure.kind),
            Event::LinkEnded { .. } => Self::Ended,
            Event::LinkExited { exit, .. } => Self::Exited(exit),
            other => panic!("not a fact about a link: {other:?}"),
        }
    }
}

/// A host that writes down the facts.
struct Recorder {
    links: Mutex<Links>,
    facts: mpsc::UnboundedSender<Fact>,
    readable: AtomicBool,
}

impl Host for Recorder {
    fn turn<'a, T>(self: &Arc<Self>, step: impl FnOnce(&mut Links) -> (Option<Event<'a>>, T)) -> T {
        // Under the lock, as the core is told: no other task's fact comes in between.
        let mut links = self.links.lock().unwrap();
        let (fact, found) = step(&mut links);
        if let Some(fact) = fact {
            self.facts.send(fact.into()).unwrap();
        }
        found
    }

    fn is_wanted(&self) -> bool {
        true
    }

    fn poll_readable(&self, link: LinkId, cx: &mut Context<'_>) -> Poll<()> {
        let mut links = self.links.lock().unwrap();
        if self.readable.load(Ordering::Relaxed) {
            return Poll::Ready(());
        }
        links.pause(link, cx);
        Poll::Pending
    }
}

/// Some facts.
#[derive(Debug, Default)]
struct Seen {
    data: Vec<u8>,
    stderr: usize,
    others: Vec<Fact>,
}

impl Seen {
    fn has(&self, fact: Fact) -> bool {
        self.others.contains(&fact)
    }
}

/// A recorder, its facts, and the mark that all processes started through it carry in their environment.
struct Bench {
    host: Arc<Recorder>,
    facts: mpsc::UnboundedReceiver<Fact>,
    mark: String,
}

impl Bench {
    fn new(test: &str) -> Self {
        Self::with_streams(test, BTreeMap::new())
    }

    fn with_streams(test: &str, streams: BTreeMap<String, Box<dyn Stream>>) -> Self {
        let (sender, facts) = mpsc::unbounded_channel();
        let host = Arc::new(Recorder {
            links: Mutex::new(Links::new(streams, Handle::current())),
            facts: sender,
            readable: AtomicBool::new(true),
        });
        let mark = format!("{test}-{}", std_process::id());
        Self { host, facts, mark }
    }

    /// Performs an action as the core's loop does.
    fn perform(&self, action: Action, eager: bool) {
        let mut links = self.host.links.lock().unwrap();
        if let Some(fact) = links.perform(action, eager, &self.host) {
            self.host.facts.send(fact.into()).unwrap();
        }
        let wakes = take(&mut links.wakes);
        drop(links);
        wakes.into_iter().for_each(Waker::wake);
    }

    fn open(&self, target: LinkTarget) {
        let target = Arc::new(target);
        self.perform(Action::OpenLink { link: LINK, target }, true);
    }

    fn write(&self, bytes: &[u8], eager: bool) {
        let bytes = bytes.to_vec();
        self.perform(Action::Write { link: LINK, bytes }, eager);
    }

    fn close_input(&self) {
        self.perform(Action::CloseInput { link: LINK }, true);
    }

    fn terminate(&self, force: bool) {
        self.perform(Action::Terminate { link: LINK, force }, true);
    }

    fn release(&self) {
        self.perform(Action::Release { link: LINK }, true);
    }

    fn plan(&self, program: &str, args: &[&str]) -> SpawnPlan {
        let mut plan = SpawnPlan::new(program, args.iter().copied());
        plan.env = vec![
            ("PATH".into(), Secret::new("/usr/local/bin:/usr/bin:/bin")),
            ("MARK".into(), Secret::new(&self.mark)),
        ];
        plan
    }

    /// Starts a shell with this script and waits until it runs.
    async fn shell(&mut self, script: &str) {
        self.open(LinkTarget::Process(self.plan("/bin/sh", &["-c", script])));
        assert_eq!(self.next().await, Fact::Opened);
    }

    async fn next(&mut self) -> Fact {
        let fact = timeout(PATIENCE, self.facts.recv()).await;
        fact.expect("a fact in time").expect("a fact")
    }

    /// The facts until enough is known, data and standard error joined. Output, standard error and exit
    /// are told by different tasks, in any order.
    async fn until(&mut self, enough: impl Fn(&Seen) -> bool) -> Seen {
        let mut seen = Seen::default();
        while !enough(&seen) {
            match self.next().await {
                Fact::Data(bytes) => seen.data.extend(bytes),
                Fact::Stderr(count) => seen.stderr += count,
                fact => seen.others.push(fact),
            }
        }
        seen
    }

    /// The numbers of all processes with this bench's mark, zombies (which have no environment) aside.
    fn processes(&self) -> BTreeSet<u32> {
        let mark = format!("MARK={}\0", self.mark);
        let pids = fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let marked = |pid: &u32| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ
                .windows(mark.len())
                .any(|window| window == mark.as_bytes())
        };
        pids.filter(marked).collect()
    }
}

async fn eventually(condition: impl Fn() -> bool) {
    let poll = async {
        while !condition() {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(PATIENCE, poll)
        .await
        .expect("the condition to become true");
}

/// The standard streams of a process that are pipes, by inode.
fn standard_pipes(pid: u32) -> BTreeSet<String> {
    let streams = (0..3).filter_map(|fd| fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok());
    let names = streams.map(|target| target.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("pipe:")).collect()
}

/// How many of these pipes this process has open.
fn held(pipes: &BTreeSet<String>) -> usize {
    let open = fs::read_dir("/proc/self/fd").unwrap();
    let targets = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    targets
        .filter(|target| pipes.contains(&*target.to_string_lossy()))
        .count()
}

#[tokio::test]
async fn bytes_pass_both_full_pipes() {
    for eager in [true, false] {
        let mut bench = Bench::new("round-trip");
        bench.shell("exec cat").await;
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
        bench.write(&bytes, eager);
        let Seen {
            mut data, others, ..
        } = bench.until(|seen| seen.has(Fact::Written)).await;
        assert_eq!(others, [Fact::Written]);
        bench.close_input();
        let exited = Fact::Exited(Exit::Code(0));
        let rest = bench.until(|seen| seen.others.len() == 3).await;
        assert!(
            rest.has(Fact::Ended) && rest.has(Fact::StderrEnded) && rest.has(exited),
            "{:?}",
            rest.others
        );
        data.extend(rest.data);
        assert!(data == bytes, "{} bytes came back", data.len());
    }
}

#[tokio::test]
async fn closing_the_input_drops_a_blocked_write() {
    let mut bench = Bench::new("blocked-close");
    // It reads when it is asked to end: what it finds then is what a pipe holds, and the end of input.
    bench
        .shell("trap 'exec wc -c' TERM; echo ready; while :; do sleep 0.01; done")
        .await;
    assert_eq!(bench.next().await, Fact::Data(b"ready\n".to_vec()));
    bench.write(&[b'x'; 1 << 20], true);
    bench.close_input();
    bench.terminate(false);
    let seen = bench.until(|seen| seen.has(Fact::Ended)).await;
    let text = str::from_utf8(&seen.data).unwrap();
    let count: usize = text.trim().parse().unwrap();
    assert!((1..1 << 20).contains(&count), "{count} bytes arrived");
    assert!(!seen.has(Fact::Written));
}

#[tokio::test]
async fn a_write_to_a_closed_input_fails_once() {
    let mut bench = Bench::new("closed-input");
    bench.shell("exec 0<&-; echo closed; exec sleep 1000").await;
    assert_eq!(bench.next().await, Fact::Data(b"closed\n".to_vec()));
    bench.write(b"{}\n", true);
    assert_eq!(bench.next().await, Fact::WriteFailed(IoKind::BrokenPipe));
    bench.release();
}

#[tokio::test]
async fn asking_ends_one_that_listens_and_insisting_one_that_does_not() {
    let mut bench = Bench::new("polite");
    bench.shell("echo ready; exec sleep 1000").await;
    assert_eq!(bench.next().await, Fact::Data(b"ready\n".to_vec()));
    bench.terminate(false);
    let exited = |seen: &Seen| seen.has(Fact::Exited(Exit::Signal(15)));
    bench.until(exited).await;

    let mut bench = Bench::new("deaf");
    bench
        .shell("trap 'echo asked' TERM; echo ready; while :; do sleep 0.01; done")
        .await;
    assert_eq!(bench.next().await, Fact::Data(b"ready\n".to_vec()));
    bench.terminate(false);
    bench.until(|seen| seen.data == b"asked\n").await;
    bench.terminate(true);
    let exited = |seen: &Seen| seen.has(Fact::Exited(Exit::Signal(9)));
    bench.until(exited).await;
}

#[tokio::test]
async fn release_leaves_no_process_of_the_group_and_no_pipe() {
    let mut bench = Bench::new("family");
    bench
        .shell("trap '' TERM; sleep 1000 & sleep 1000 & echo ready; wait")
        .await;
    assert_eq!(bench.next().await, Fact::Data(b"ready\n".to_vec()));
    eventually(|| bench.processes().len() == 3).await;
    let family = bench.processes();
    let shared = standard_pipes(*family.first().unwrap());
    assert_eq!(shared.len(), 3);
    assert_eq!(held(&shared), shared.len());

    bench.release();
    // The shell is this process's child and reaped here; the others are for init to reap.
    let shell = format!("/proc/{}", family.first().unwrap());
    eventually(|| bench.processes().is_empty() && !fs::exists(&shell).unwrap()).await;
    eventually(|| held(&shared) == 0).await;
}

#[tokio::test]
async fn release_lets_go_of_pipes_that_a_process_outside_the_group_holds() {
    let mut bench = Bench::new("escaped");
    bench
        .shell("setsid sh -c 'echo away; exec sleep 1000' & read go; exit 7")
        .await;
    assert_eq!(bench.next().await, Fact::Data(b"away\n".to_vec()));
    bench.write(b"go\n", true);
    assert_eq!(bench.next().await, Fact::Written);
    assert_eq!(bench.next().await, Fact::Exited(Exit::Code(7)));
    let escaped = bench.processes();
    let escapee = *escaped.first().unwrap();
    assert_eq!(escaped.len(), 1);
    let shared = standard_pipes(escapee);
    assert_eq!(held(&shared), shared.len());

    bench.release();
    eventually(|| held(&shared) == 0).await;
    assert_eq!(bench.processes(), escaped);
    assert!(bench.facts.try_recv().is_err());
    let pid = rustix::process::Pid::from_raw(escapee.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn an_exited_child_is_reaped_by_release_and_not_before() {
    let mut bench = Bench::new("zombie");
    bench.shell("echo $$; exit 3").await;
    let exited = Fact::Exited(Exit::Code(3));
    let seen = bench.until(|seen| seen.others.len() == 3).await;
    assert!(seen.has(Fact::Ended) && seen.has(Fact::StderrEnded) && seen.has(exited));
    let pid = String::from_utf8(seen.data).unwrap();
    let pid: u32 = pid.trim().parse().unwrap();
    assert!(fs::exists(format!("/proc/{pid}")).unwrap());
    bench.release();
    assert!(!fs::exists(format!("/proc/{pid}")).unwrap());
}

#[tokio::test]
async fn a_link_released_while_its_process_starts_leaves_nothing() {
    let mut bench = Bench::new("aborted");
    let plan = bench.plan("/bin/sleep", &["1000"]);
    bench.open(LinkTarget::Process(plan));
    bench.release();
    // The starting thread holds the host until it is done.
    eventually(|| Arc::strong_count(&bench.host) == 1).await;
    eventually(|| bench.processes().is_empty()).await;
    assert!(bench.facts.try_recv().is_err());
}

#[tokio::test]
async fn standard_error_is_drained_while_the_output_is_paused() {
    let mut bench = Bench::new("stderr");
    bench.host.readable.store(false, Ordering::Relaxed);
    bench
        .shell("echo out; read go; head -c 1000000 /dev/zero >&2; echo more; exec sleep 1000")
        .await;
    assert_eq!(bench.next().await, Fact::Data(b"out\n".to_vec()));
    bench.write(b"go\n", true);
    let seen = bench.until(|seen| seen.stderr >= 1_000_000).await;
    assert_eq!(seen.stderr, 1_000_000);
    assert_eq!((seen.data, seen.others), (vec![], vec![Fact::Written]));
}

#[tokio::test]
async fn a_paused_link_is_not_read_until_it_is_resumed() {
    let mut bench = Bench::new("paused");
    bench.host.readable.store(false, Ordering::Relaxed);
    bench
        .shell("head -c 1000000 /dev/zero; echo full >&2")
        .await;
    assert!(matches!(bench.next().await, Fact::Data(_)));
    sleep(Duration::from_millis(100)).await;
    assert!(bench.facts.try_recv().is_err());

    bench.host.readable.store(true, Ordering::Relaxed);
    let wakes = {
        let mut links = bench.host.links.lock().unwrap();
        links.resume(|_| true);
        take(&mut links.wakes)
    };
    assert_eq!(wakes.len(), 1);
    wakes.into_iter().for_each(Waker::wake);
    let seen = bench.until(|seen| seen.has(Fact::Ended)).await;
    assert!(seen.data.len() > 900_000);
}

#[tokio::test]
async fn the_environment_is_the_plan_s_and_no_other() {
    let mut bench = Bench::new("environment");
    let mut plan = bench.plan("/usr/bin/env", &[]);
    plan.env = vec![("ONLY".into(), Secret::new("this one"))];
    plan.cwd = Some("/".into());
    bench.open(LinkTarget::Process(plan));
    assert_eq!(bench.next().await, Fact::Opened);
    let seen = bench.until(|seen| seen.has(Fact::Ended)).await;
    assert_eq!(String::from_utf8(seen.data).unwrap(), "ONLY=this one\n");
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let mut bench = Bench::new("missing");
    let no_directory = {
        let mut plan = bench.plan("/bin/cat", &[]);
        plan.cwd = Some("/no/such/directory".into());
        plan
    };
    for (plan, kind) in [
        (bench.plan("/no/such/program", &[]), IoKind::NotFound),
        (bench.plan("/etc/passwd", &[]), IoKind::PermissionDenied),
        (no_directory, IoKind::NotFound),
    ] {
        bench.open(LinkTarget::Process(plan));
        match bench.next().await {
            Fact::Failed(failure) => assert_eq!(failure.kind, kind, "{failure:?}"),
            fact => panic!("{fact:?}"),
        }
    }
}

#[tokio::test]
async fn a_stream_is_used_once_and_shut_down_in_order() {
    let (ours, mut theirs) = tokio::io::duplex(16);
    let streams: [(String, Box<dyn Stream>); 1] = [("one".into(), Box::new(ours))];
    let mut bench = Bench::with_streams("stream", streams.into());
    let target = || LinkTarget::Stream { name: "one".into() };
    bench.open(target());
    assert_eq!(bench.next().await, Fact::Opened);

    bench.write(b"more than sixteen bytes\n", true);
    let mut line = [0; 24];
    theirs.read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"more than sixteen bytes\n");
    assert_eq!(bench.next().await, Fact::Written);

    bench.close_input();
    assert_eq!(theirs.read(&mut line).await.unwrap(), 0);
    theirs.write_all(b"still heard\n").await.unwrap();
    assert_eq!(bench.next().await, Fact::Data(b"still heard\n".to_vec()));

    bench.perform(
        Action::OpenLink {
            link: LinkId { serial: 2, ..LINK },
            target: Arc::new(target()),
        },
        true,
    );
    assert!(
        matches!(bench.next().await, Fact::Failed(failure) if failure.kind == IoKind::NotFound)
    );

    bench.release();
    let refused = async { while theirs.write_all(b"x").await.is_ok() {} };
    timeout(PATIENCE, refused).await.unwrap();
}
