//! What may be started, and where it is found (R100, R110).

mod config_support;

use config_support::*;
use mcp_proto::config::{SpawnRule, StdioConfig, Templated};

/// R100: the child gets the allow-listed variables and its own, nothing else.
#[test]
fn a_plan_is_pinned() {
    let child = StdioConfig::new("git", ["a b"])
        .cwd("/w")
        .env("TOKEN", "mine")
        .env_allow(["HOME", "TOKEN", "EXPORTED", "ABSENT"]);
    let plan = plan(&child, None).unwrap();
    assert_eq!(
        (plan.program.as_str(), &plan.args[..]),
        ("/usr/bin/git", &["a b".to_owned()][..])
    );
    assert_eq!(plan.cwd.as_deref(), Some("/w"));
    let variables: Vec<(&str, &str)> = plan
        .env
        .iter()
        .map(|(name, value)| (name.as_str(), value.expose()))
        .collect();
    assert_eq!(variables, [("HOME", "/home/ada"), ("TOKEN", "mine")]);
    assert_eq!(plan.shown(), "git \"a b\"");
}

/// R100: what is not on the list is refused, also when its name is.
#[test]
fn the_allow_list_decides() {
    let rules = [
        SpawnRule::exact("git", ["serve"]),
        SpawnRule::any_args("/opt/tool"),
    ];
    let none: [&str; 0] = [];
    let allowed = [
        StdioConfig::new("git", ["serve"]),
        StdioConfig::new("/usr/bin/git", ["serve"]),
        StdioConfig::new("/opt/tool", ["x", "y"]),
    ];
    for child in allowed {
        assert!(plan(&child, Some(&rules)).is_ok(), "{child}");
    }
    let refused = [
        StdioConfig::new("git", none),
        StdioConfig::new("git", ["serve", "x"]),
        StdioConfig::new("/evil/git", ["serve"]),
        StdioConfig::new("git", ["serve"]).env("PATH", "/evil"),
        StdioConfig::new("./git", ["serve"]).cwd("/usr/bin"),
        StdioConfig::new("sh", none),
    ];
    for child in refused {
        let error = plan(&child, Some(&rules)).unwrap_err();
        assert!(error.contains("not on the allow-list"), "{child}: {error}");
        assert!(plan(&child, Some(&[])).is_err());
        assert!(plan(&child, None).is_ok(), "{child}");
    }
}

#[test]
fn a_missing_program_is_named() {
    let none: [&str; 0] = [];
    let missing = |command| plan(&StdioConfig::new(command, none), None).unwrap_err();
    assert_eq!(
        missing("nowhere"),
        "cannot start \"nowhere\": not found on PATH"
    );
    assert_eq!(
        missing("./nowhere"),
        "cannot start \"./nowhere\": no program that can be run stands there"
    );
    let hidden = Templated::expanded("nowhere", "${TOKEN}");
    let error = plan(&StdioConfig::new(hidden, none), None).unwrap_err();
    assert_eq!(error, "cannot start \"${TOKEN}\": not found on PATH");
}

/// R100: which files a command may name, in order; the working directory is not among them unless named.
#[test]
fn a_command_is_looked_for_where_posix_looks() {
    let asked = |command: &str, cwd: &str, path: &str| {
        let none: [&str; 0] = [];
        let child = StdioConfig::new(command, none).cwd(cwd).env("PATH", path);
        let mut asked = Vec::new();
        let found = child.plan(None, &mut env, &mut |file| {
            asked.push(file.to_owned());
            None
        });
        assert!(found.is_err());
        asked
    };
    let none: [&str; 0] = [];
    assert_eq!(asked("git", "/w", "/a:/b/:"), ["/a/git", "/b/git"]);
    assert_eq!(asked("git", "/w", "/"), ["/git"]);
    assert_eq!(asked("git", "/w", ""), none);
    assert_eq!(asked("./git", "/w", "/a"), ["/w/./git"]);
    assert_eq!(asked("/opt/git", "/w", "/a"), ["/opt/git"]);
}
