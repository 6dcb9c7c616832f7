//! What a child process is started with (R100).

use std::fs;

use mcp_proto::PeerConfig;
use mcp_proto::config::StdioConfig;
use serde_json::json;

use super::process::MARK;
use super::stage::Stage;

/// Its environment is the allowed variables and the configured ones, and no other.
pub(super) fn the_child_sees_only_allowed_variables(stage: &Stage<'_>) {
    let odd = "spaces, \"quotes\", ünï = 🔒";
    let closed = stage.stdio_peer("closed", json!({}), |stdio| {
        stdio.env("CONFORMANCE_OWN", odd).env_allow::<&str>([])
    });
    let open = stage.stdio_peer("open", json!({}), |stdio| {
        stdio.env_allow(["PATH", "CONFORMANCE_UNSET"])
    });
    let client = stage.connect(vec![closed, open, stage.modern("usual")]);
    let read = |peer: &str, name: &str| client.call(peer, "env", json!({"name": name})).text();
    assert_eq!(read("closed", "CONFORMANCE_OWN"), odd);
    assert_eq!(read("closed", "PATH"), "unset");
    assert_eq!(read("open", "CONFORMANCE_OWN"), "unset");
    assert_eq!(read("open", "CONFORMANCE_UNSET"), "unset");
    assert_eq!(Ok(read("open", "PATH")), std::env::var("PATH"));
    // Cargo sets it for tests, and a shell sets others: nothing of that kind is inherited.
    let inherited: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
    let allowed = mcp_proto::config::DEFAULT_ENV_ALLOW;
    for name in inherited
        .iter()
        .filter(|name| !allowed.contains(&name.as_str()))
    {
        assert_eq!(read("usual", name), "unset", "{name}");
    }
    for process in stage.processes() {
        let environment = fs::read(format!("/proc/{}/environ", process.id)).unwrap_or_default();
        let text = String::from_utf8_lossy(&environment).into_owned();
        assert!(text.contains(MARK), "{text}");
    }
    client.end();
}

/// No shell is involved: what is configured is what the child gets.
pub(super) fn arguments_and_directory_arrive_exactly(stage: &Stage<'_>) {
    let odd = "two  spaces 'single' \"double\" $HOME `id` $(id) \\ * ? ; & | < > # ~ ! ünï 漢字 🔒\ttab\nline";
    let directory = stage.file("a directory 'with' \"odd\" characters ü");
    if let Err(error) = fs::create_dir_all(&directory) {
        panic!("{}: {error}", directory.display());
    }
    let script = json!({"options": {"instructions": odd}});
    let cwd = directory.display().to_string();
    let peer = stage.stdio_peer("odd", script.clone(), |mut stdio| {
        stdio.args.extend([odd, "", "-"].map(Into::into));
        stdio.cwd(cwd)
    });
    let client = stage.connect(vec![peer]);
    client.echo("odd", "hello");
    let processes = stage.processes();
    let [process] = &processes[..] else {
        panic!("expected one process, got {processes:?}");
    };
    let script = script.to_string();
    let expected = [&stage.server(), "--script-json", &script, odd, "", "-"];
    assert_eq!(process.arguments(), expected);
    assert_eq!(process.directory().as_ref(), Some(&directory));
    assert!(process.leads_a_group());
    client.end();
}

/// A bare name is looked up on the child's own `PATH`, a path with separators from its directory.
pub(super) fn a_relative_command_is_found_on_path(stage: &Stage<'_>) {
    let directory = stage.file("bin");
    let linked = fs::create_dir_all(&directory).and_then(|()| {
        std::os::unix::fs::symlink(stage.server(), directory.join("conformance-linked"))
    });
    if let Err(error) = linked {
        panic!("{}: {error}", directory.display());
    }
    let with_command = |name: &str, command: &str, change: &dyn Fn(StdioConfig) -> StdioConfig| {
        stage.stdio_peer(name, json!({}), |mut stdio| {
            stdio.command = command.into();
            change(stdio)
        })
    };
    let bin = directory.display().to_string();
    let parent = stage.file("").display().to_string();
    let peers: Vec<PeerConfig> = vec![
        with_command("bare", "conformance-linked", &|stdio| {
            stdio.env("PATH", bin.as_str())
        }),
        with_command("relative", "bin/conformance-linked", &|stdio| {
            stdio.cwd(parent.as_str())
        }),
    ];
    let client = stage.connect(peers);
    client.echo("bare", "found");
    client.echo("relative", "found");
    client.end();
}
