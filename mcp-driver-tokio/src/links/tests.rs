//! The links alone, against real processes: no core decides anything here (R100).

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, process as std_process};

use mcp_proto::config::{Secret, SpawnPlan};
use mcp_proto::{Exit, PeerId};
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
        let (fact, found) = step(&mut self.links.lock().unwrap());
        if let Some(fact) = fact {
            self.facts.send(fact.into()).unwrap();
        }
        found
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
        let mut wakes = Vec::new();
        let mut links = self.host.links.lock().unwrap();
        let fact = links.perform(action, eager, &self.host, &mut wakes);
        drop(links);
        if let Some(fact) = fact {
            self.host.facts.send(fact.into()).unwrap();
        }
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

    /// The facts up to this one, data and standard error joined.
    async fn until(&mut self, last: Fact) -> (Vec<u8>, usize, Vec<Fact>) {
        let (mut data, mut stderr, mut others) = (Vec::new(), 0, Vec::new());
        loop {
            match self.next().await {
                fact if fact == last => return (data, stderr, others),
                Fact::Data(bytes) => data.extend(bytes),
                Fact::Stderr(count) => stderr += count,
                fact => others.push(fact),
            }
        }
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
        let (mut data, _, others) = bench.until(Fact::Written).await;
        bench.close_input();
        let (rest, _, last) = bench.until(Fact::Ended).await;
        data.extend(rest);
        assert!(data == bytes, "{} bytes came back", data.len());
        assert_eq!(others, []);
        assert!(last.is_empty() || last == [Fact::Exited(Exit::Code(0))]);
    }
}

#[tokio::test]
async fn closing_the_input_drops_a_blocked_write() {
    let mut bench = Bench::new("blocked-close");
    // The reader starts late: what it finds then is what a pipe holds, and the end of input.
    bench.shell("sleep 0.3; wc -c").await;
    bench.write(&[b'x'; 1 << 20], true);
    bench.close_input();
    let (data, _, others) = bench.until(Fact::Ended).await;
    let count: usize = String::from_utf8(data).unwrap().trim().parse().unwrap();
    assert!((1..1 << 20).contains(&count), "{count} bytes arrived");
    assert!(!others.contains(&Fact::Written));
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
    bench.until(Fact::Exited(Exit::Signal(15))).await;

    let mut bench = Bench::new("deaf");
    bench
        .shell("trap 'echo asked' TERM; echo ready; while :; do sleep 0.01; done")
        .await;
    assert_eq!(bench.next().await, Fact::Data(b"ready\n".to_vec()));
    bench.terminate(false);
    bench.until(Fact::Data(b"asked\n".to_vec())).await;
    bench.terminate(true);
    bench.until(Fact::Exited(Exit::Signal(9))).await;
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
    bench.shell("setsid sleep 1000 & sleep 0.2; exit 7").await;
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
    let (data, _, _) = bench.until(Fact::Exited(Exit::Code(3))).await;
    let pid: u32 = String::from_utf8(data).unwrap().trim().parse().unwrap();
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
        .shell("echo out; head -c 1000000 /dev/zero >&2; exec sleep 0.1")
        .await;
    let (data, stderr, _) = bench.until(Fact::Exited(Exit::Code(0))).await;
    assert_eq!((data, stderr), (b"out\n".to_vec(), 1_000_000));
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
    let mut wakes = Vec::new();
    bench
        .host
        .links
        .lock()
        .unwrap()
        .resume(|_| true, &mut wakes);
    assert_eq!(wakes.len(), 1);
    wakes.into_iter().for_each(Waker::wake);
    let (data, ..) = bench.until(Fact::Ended).await;
    assert!(data.len() > 900_000);
}

#[tokio::test]
async fn the_environment_is_the_plan_s_and_no_other() {
    let mut bench = Bench::new("environment");
    let mut plan = bench.plan("/usr/bin/env", &[]);
    plan.env = vec![("ONLY".into(), Secret::new("this one"))];
    plan.cwd = Some("/".into());
    bench.open(LinkTarget::Process(plan));
    assert_eq!(bench.next().await, Fact::Opened);
    let (data, ..) = bench.until(Fact::Ended).await;
    assert_eq!(String::from_utf8(data).unwrap(), "ONLY=this one\n");
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
