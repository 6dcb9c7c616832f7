//! Where the servers are installed, and what they work on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long processes may take to disappear after the client was closed.
const GONE: Duration = Duration::from_secs(5);

/// The folder with the pins, the small servers and what was installed.
fn assets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("interop")
}

/// Installs the servers where they are not installed yet; `false` when no registry can be reached.
pub(crate) fn install() -> Result<bool, String> {
    let script = assets().join("install.sh");
    let status = Command::new("bash").arg(&script).status();
    let status = status.map_err(|error| format!("{}: {error}", script.display()))?;
    match status.code() {
        Some(0) => Ok(true),
        Some(75) => Ok(false),
        _ => Err(format!("{} failed: {status}", script.display())),
    }
}

/// A fresh place for one run: a git repository, a directory, a memory file.
pub(crate) struct Site {
    folder: TempDir,
}

impl Site {
    pub(crate) fn prepare() -> Result<Self, String> {
        let folder = TempDir::new().map_err(|error| format!("temporary folder: {error}"))?;
        let site = Self { folder };
        site.fill()
            .map_err(|error| format!("preparing the servers' data: {error}"))?;
        Ok(site)
    }

    fn fill(&self) -> std::io::Result<()> {
        fs::create_dir_all(self.files().join("sub"))?;
        fs::write(self.files().join("hello.txt"), "one\ntwo\nthree\n")?;
        fs::write(self.files().join("sub/x.md"), "x\n")?;
        fs::create_dir(self.repository())?;
        self.git(&["init", "-q", "-b", "main"])?;
        fs::write(self.repository().join("a.txt"), "one\n")?;
        self.git(&["add", "a.txt"])?;
        self.git(&["commit", "-q", "-m", "first"])?;
        fs::write(self.repository().join("a.txt"), "one\ntwo\n")
    }

    /// A git command whose result does not depend on this machine's settings or clock.
    fn git(&self, args: &[&str]) -> std::io::Result<()> {
        const WHEN: &str = "2026-01-02T03:04:05Z";
        let status = Command::new("git")
            .args(args)
            .current_dir(self.repository())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .envs([
                ("GIT_AUTHOR_NAME", "Ada"),
                ("GIT_AUTHOR_EMAIL", "ada@example.com"),
            ])
            .envs([
                ("GIT_COMMITTER_NAME", "Ada"),
                ("GIT_COMMITTER_EMAIL", "ada@example.com"),
            ])
            .envs([("GIT_AUTHOR_DATE", WHEN), ("GIT_COMMITTER_DATE", WHEN)])
            .status()?;
        if status.success() {
            Ok(())
        } else {
            Err(std::io::Error::other(format!("git {args:?}: {status}")))
        }
    }

    /// The folder that the filesystem server may use, without symbolic links.
    pub(crate) fn files(&self) -> PathBuf {
        let root = self.folder.path();
        root.canonicalize()
            .unwrap_or_else(|_| root.to_path_buf())
            .join("files")
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    fn record(&self) -> PathBuf {
        self.folder.path().join("recorded")
    }

    /// What the server that is not allow-listed was sent, through the recording proxy.
    pub(crate) fn refused_server_input(&self) -> Result<String, String> {
        fs::read_to_string(self.record()).map_err(|error| format!("the proxy's record: {error}"))
    }

    /// Writes the configuration of all servers and gives its path.
    pub(crate) fn config(&self) -> Result<PathBuf, String> {
        let path = self.folder.path().join("mcp.json");
        let text = self.servers()?.to_string();
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    fn servers(&self) -> Result<Value, String> {
        let assets = assets();
        let python = assets.join(".venv/bin/python");
        let node = |server: &str| {
            assets.join(format!(
                "node_modules/@modelcontextprotocol/server-{server}/dist/index.js"
            ))
        };
        let proxy = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
        // Started as `python`, `node` and this program: nothing is looked up on the machine but them.
        let memory = self.folder.path().join("memory.json");
        let mut peers = json!({
            "time": {"command": python, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]},
            "git": {"command": python, "args": ["-m", "mcp_server_git", "--repository", self.repository()]},
            "fastmcp": {"command": python, "args": ["servers/fastmcp_server.py"], "cwd": assets},
            "mcp": {"command": python, "args": ["servers/mcp_server.py"], "cwd": assets},
            "everything": {"command": "node", "args": [node("everything"), "stdio"], "allowLegacy": true},
            "filesystem": {"command": "node", "args": [node("filesystem"), self.files()], "allowLegacy": true},
            "memory": {"command": "node", "args": [node("memory")], "allowLegacy": true,
                       "env": {"MEMORY_FILE_PATH": memory}},
            "refused": {"command": proxy, "args": [super::proxy::FLAG, self.record(), "node", node("memory")],
                        "env": {"MEMORY_FILE_PATH": memory}},
        });
        // Starting all of them at once on a small machine is slow.
        for (_, peer) in peers.as_object_mut().into_iter().flatten() {
            if let Some(peer) = peer.as_object_mut() {
                peer.insert("probeTimeoutMs".into(), json!(60_000));
            }
        }
        Ok(json!({ "mcpServers": peers }))
    }

    /// Fails when a process still runs that was started for this site or from the installed servers.
    pub(crate) fn nothing_is_left(&self) -> Result<(), String> {
        let started = Instant::now();
        loop {
            let left = processes(&[
                &assets().join(".venv"),
                &assets().join("node_modules"),
                self.folder.path(),
            ]);
            if left.is_empty() {
                return Ok(());
            }
            if started.elapsed() > GONE {
                return Err(format!(
                    "still running after the client was closed: {left:?}"
                ));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The command lines of living processes that name one of these paths.
fn processes(paths: &[&Path]) -> Vec<String> {
    let own = std::process::id().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_str() != Some(&own))
        .filter_map(|entry| {
            // Zombies have an empty command line: they are dead and wait for their parent.
            let command = String::from_utf8_lossy(&fs::read(entry.path().join("cmdline")).ok()?)
                .replace('\0', " ");
            paths
                .iter()
                .any(|path| command.contains(&*path.to_string_lossy()))
                .then_some(command)
        })
        .collect()
}
