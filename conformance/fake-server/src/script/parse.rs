//! Reads the JSON form of a script. Every error names the member and what was expected there.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::template::Template;
use super::{
    CacheScope, Emission, Era, LegacyVersion, Matcher, Options, Script, ScriptError, Step, base64,
};
use crate::ChildKind;

type Result<T> = std::result::Result<T, ScriptError>;

/// The largest output of one step, so that a slip of the pen does not exhaust the machine.
const OUTPUT_LIMIT_BYTES: u64 = 256 * 1024 * 1024;

/// Every step keyword with the members that may stand beside it.
const KEYWORDS: [(&str, &[&str]); 27] = [
    ("assert_no_input_ms", &[]),
    ("close_stdin_read", &[]),
    ("close_stdout", &[]),
    ("exit", &[]),
    ("expect_next", &["else_exit", "as"]),
    ("forbid", &[]),
    ("forbid_before", &[]),
    ("hang", &[]),
    ("if_seen", &["emit"]),
    ("ignore_sigterm", &[]),
    ("ignore_stdin_eof", &[]),
    ("kill", &[]),
    ("loop", &[]),
    ("on", &["as", "where"]),
    ("on_each", &["emit", "where"]),
    ("on_response", &[]),
    ("optional_on", &["as", "where", "within_ms"]),
    ("raw", &[]),
    ("raw_b64", &[]),
    ("repeat", &[]),
    ("repeat_line", &[]),
    ("sleep_ms", &[]),
    ("spawn_child", &[]),
    ("stderr", &[]),
    ("stderr_b64", &[]),
    ("stderr_bytes", &[]),
    ("stop_reading", &[]),
];

pub(super) fn script(text: &str) -> Result<Script> {
    let document: Value = serde_json::from_str(text)
        .map_err(|error| ScriptError::new("", format!("not JSON: {error}")))?;
    let root = object(&document, "")?;
    known_keys(
        root,
        "",
        &["era", "protocol_version", "options", "steps", "respawn"],
    )?;
    let (era, own_handshake) = era(root)?;
    let options = match root.get("options") {
        Some(value) => options(object(value, "options")?)?,
        None => Options::default(),
    };
    let list = |key: &str| match root.get(key) {
        Some(value) => step_list(value, key).map(Some),
        None => Ok(None),
    };
    Ok(Script {
        era,
        options,
        own_handshake,
        steps: list("steps")?.unwrap_or_else(|| Arc::from([])),
        respawn: list("respawn")?,
    })
}

pub(super) fn steps(text: &str) -> Result<Arc<[Step]>> {
    let document: Value = serde_json::from_str(text)
        .map_err(|error| ScriptError::new("steps", format!("not JSON: {error}")))?;
    step_list(&document, "steps")
}

fn era(root: &Map<String, Value>) -> Result<(Era, bool)> {
    let version = match root.get("protocol_version") {
        None => None,
        Some(value) => {
            let name = string(value, "protocol_version")?;
            Some(LegacyVersion::parse(name).ok_or_else(|| {
                let known = LegacyVersion::ALL.map(LegacyVersion::as_str).join(", ");
                ScriptError::new(
                    "protocol_version",
                    format!("`{name}` is no legacy revision; known: {known}"),
                )
            })?)
        }
    };
    let name = match root.get("era") {
        Some(value) => string(value, "era")?,
        None => "modern",
    };
    if version.is_some() && name != "legacy" {
        return Err(ScriptError::new(
            "protocol_version",
            "only the legacy era has a choice of revisions",
        ));
    }
    match name {
        "modern" => Ok((Era::Modern, false)),
        "legacy" => Ok((Era::Legacy(version.unwrap_or(LegacyVersion::LATEST)), false)),
        "dual" => Ok((Era::Dual, false)),
        "probe" => Ok((Era::Dual, true)),
        other => Err(ScriptError::new(
            "era",
            format!("unknown era `{other}`; known: modern, legacy, dual, probe"),
        )),
    }
}

fn options(members: &Map<String, Value>) -> Result<Options> {
    let mut options = Options::default();
    for (key, value) in members {
        let path = format!("options.{key}");
        let text = || string(value, &path).map(str::to_owned);
        match key.as_str() {
            "name" => options.name = text()?,
            "version" => options.version = text()?,
            "instructions" => options.instructions = Some(text()?),
            "page_size" => options.page_size = Some(size(value, &path, 1)?),
            "tool_prefix" => options.tool_prefix = text()?,
            "ttl_ms" => options.ttl_ms = whole(value, &path)?,
            "respawn_state" => options.respawn_state = Some(PathBuf::from(text()?)),
            "transcript" => options.transcript = Some(PathBuf::from(text()?)),
            "capabilities" => options.capabilities = Some(object(value, &path)?.clone()),
            "cache_scope" => {
                options.cache_scope = match string(value, &path)? {
                    "private" => CacheScope::Private,
                    "public" => CacheScope::Public,
                    _ => return Err(ScriptError::new(&path, "expected `private` or `public`")),
                }
            }
            "tools" => {
                let names = array(value, &path)?.iter().enumerate();
                options.tools = Some(
                    names
                        .map(|(at, name)| string(name, &format!("{path}[{at}]")).map(str::to_owned))
                        .collect::<Result<_>>()?,
                );
            }
            _ => {
                return Err(ScriptError::new(
                    &path,
                    "unknown option; known: name, version, instructions, page_size, tools, tool_prefix, \
                     ttl_ms, cache_scope, capabilities, respawn_state, transcript",
                ));
            }
        }
    }
    Ok(options)
}

fn step_list(value: &Value, path: &str) -> Result<Arc<[Step]>> {
    let mut parser = Parser {
        names: BTreeSet::new(),
    };
    array(value, path)?
        .iter()
        .enumerate()
        .map(|(at, value)| parser.step(value, &format!("{path}[{at}]")))
        .collect()
}

/// Carries the names given so far, so that a reference to a later or unknown one is an error.
struct Parser {
    names: BTreeSet<String>,
}

impl Parser {
    fn step(&mut self, value: &Value, path: &str) -> Result<Step> {
        let Value::Object(members) = value else {
            return self.emission(value, path).map(Step::Emit);
        };
        let (keyword, argument) = keyword(members, path)?;
        let at = format!("{path}.{keyword}");
        Ok(match keyword {
            "assert_no_input_ms" => Step::AssertNoInput(millis(argument, &at)?),
            "close_stdin_read" => flag(argument, &at, Step::CloseStdin)?,
            "close_stdout" => flag(argument, &at, Step::CloseStdout)?,
            "expect_next" => Step::ExpectNext {
                method: string(argument, &at)?.to_owned(),
                else_exit: optional(members, path, "else_exit", exit_code)?,
                name: self.name(members, path)?,
            },
            "forbid" => Step::Forbid(string(argument, &at)?.to_owned()),
            "forbid_before" => match array(argument, &at)? {
                [first, second] => Step::ForbidBefore(
                    string(first, &format!("{at}[0]"))?.to_owned(),
                    string(second, &format!("{at}[1]"))?.to_owned(),
                ),
                _ => return Err(ScriptError::new(&at, "expected two method names")),
            },
            "hang" => flag(argument, &at, Step::Hang)?,
            "if_seen" => Step::IfSeen {
                name: self.known_name(string(argument, &at)?, &at)?,
                emit: self.emissions(members, path)?,
            },
            "ignore_sigterm" => flag(argument, &at, Step::IgnoreSigterm)?,
            "ignore_stdin_eof" => flag(argument, &at, Step::IgnoreStdinEof)?,
            "loop" => self.repetition(argument, &at)?,
            "on" | "optional_on" => Step::On {
                matcher: matcher(argument, members, path, &at)?,
                name: self.name(members, path)?,
                within: optional(members, path, "within_ms", millis)?,
            },
            "on_each" => Step::OnEach {
                matcher: matcher(argument, members, path, &at)?,
                emit: self.emissions(members, path)?,
            },
            "on_response" => match argument {
                Value::String(_) | Value::Number(_) => Step::OnResponse(argument.clone()),
                _ => return Err(ScriptError::new(&at, "expected a request id")),
            },
            "sleep_ms" => Step::Sleep(millis(argument, &at)?),
            "spawn_child" => Step::SpawnChild(match string(argument, &at)? {
                "holds_pipes" | "holds pipes" => ChildKind::HoldsPipes,
                "own_session" | "own session" => ChildKind::OwnSession,
                _ => {
                    return Err(ScriptError::new(
                        &at,
                        "expected `holds_pipes` or `own_session`",
                    ));
                }
            }),
            "stop_reading" => flag(argument, &at, Step::StopReading)?,
            _ => Step::Emit(self.emission(value, path)?),
        })
    }

    /// A step that only puts something out: those are the ones `emit` may hold.
    fn emission(&self, value: &Value, path: &str) -> Result<Emission> {
        let members = match value {
            Value::String(text) => return self.stdout(text, path, true, 1),
            Value::Object(members) => members,
            _ => return Err(ScriptError::new(path, "expected a string or an object")),
        };
        let (keyword, argument) = keyword(members, path)?;
        let at = format!("{path}.{keyword}");
        match keyword {
            "exit" => exit_code(argument, &at).map(Emission::Exit),
            "kill" if argument == &Value::Bool(true) => Ok(Emission::Kill),
            "kill" => Err(ScriptError::new(&at, "expected `true`")),
            "raw" => self.stdout(string(argument, &at)?, &at, false, 1),
            "raw_b64" => bytes(argument, &at).map(Emission::StdoutBytes),
            "repeat" | "repeat_line" => {
                let members = object(argument, &at)?;
                known_keys(members, &at, &["text", "count"])?;
                let text = string(required(members, &at, "text")?, &format!("{at}.text"))?;
                let count_path = format!("{at}.count");
                let count = size(required(members, &at, "count")?, &count_path, 0)?;
                let bytes = (text.len() as u64 + 1).saturating_mul(count as u64);
                limit(bytes, &count_path)?;
                self.stdout(text, &at, keyword == "repeat_line", count)
            }
            "stderr" => self
                .template(string(argument, &at)?, &at)
                .map(Emission::StderrText),
            "stderr_b64" => bytes(argument, &at).map(Emission::StderrBytes),
            "stderr_bytes" => {
                let count = size(argument, &at, 0)?;
                limit(count as u64, &at)?;
                Ok(Emission::StderrBytes(noise(count)))
            }
            other => Err(ScriptError::new(
                path,
                format!(
                    "`{other}` cannot stand in `emit`; use a string, raw, raw_b64, repeat, repeat_line, stderr, stderr_b64, stderr_bytes, exit or kill"
                ),
            )),
        }
    }

    fn emissions(&self, members: &Map<String, Value>, path: &str) -> Result<Vec<Emission>> {
        let at = format!("{path}.emit");
        match required(members, path, "emit")? {
            Value::Array(list) => list
                .iter()
                .enumerate()
                .map(|(index, value)| self.emission(value, &format!("{at}[{index}]")))
                .collect(),
            single => self.emission(single, &at).map(|emission| vec![emission]),
        }
    }

    fn repetition(&self, value: &Value, path: &str) -> Result<Step> {
        let members = object(value, path)?;
        known_keys(members, path, &["every_ms", "emit", "count"])?;
        let every_path = format!("{path}.every_ms");
        let every = millis(required(members, path, "every_ms")?, &every_path)?;
        let count = optional(members, path, "count", whole)?;
        if count.is_none() && every.is_zero() {
            return Err(ScriptError::new(
                &every_path,
                "must be at least 1 unless `count` ends the loop",
            ));
        }
        Ok(Step::Loop {
            every,
            emit: self.emissions(members, path)?,
            count,
        })
    }

    fn stdout(&self, text: &str, path: &str, line: bool, times: usize) -> Result<Emission> {
        Ok(Emission::StdoutText {
            text: self.template(text, path)?,
            line,
            times,
        })
    }

    fn template(&self, text: &str, path: &str) -> Result<Template> {
        let template = Template::parse(text).map_err(|problem| ScriptError::new(path, problem))?;
        for name in template.names() {
            self.known_name(name, path)?;
        }
        Ok(template)
    }

    fn name(&mut self, members: &Map<String, Value>, path: &str) -> Result<Option<String>> {
        let name = optional(members, path, "as", |value, path| {
            string(value, path).map(str::to_owned)
        })?;
        self.names.extend(name.clone());
        Ok(name)
    }

    fn known_name(&self, name: &str, path: &str) -> Result<String> {
        if self.names.contains(name) {
            return Ok(name.to_owned());
        }
        Err(ScriptError::new(
            path,
            format!("no earlier step is named `{name}`; give one `\"as\":\"{name}\"`"),
        ))
    }
}

/// The one keyword of a step, after a check that nothing else stands beside it.
fn keyword<'a>(members: &'a Map<String, Value>, path: &str) -> Result<(&'static str, &'a Value)> {
    let mut found = KEYWORDS
        .iter()
        .filter_map(|(key, beside)| Some((*key, *beside, members.get(*key)?)));
    let Some((key, beside, argument)) = found.next() else {
        let known: Vec<&str> = KEYWORDS.iter().map(|(key, _)| *key).collect();
        return Err(ScriptError::new(
            path,
            format!("no known step keyword; known: {}", known.join(", ")),
        ));
    };
    if let Some((second, ..)) = found.next() {
        return Err(ScriptError::new(
            path,
            format!("`{key}` and `{second}` are two steps; give each its own object"),
        ));
    }
    let allowed: Vec<&str> = std::iter::once(key).chain(beside.iter().copied()).collect();
    known_keys(members, path, &allowed)?;
    Ok((key, argument))
}

fn matcher(method: &Value, members: &Map<String, Value>, path: &str, at: &str) -> Result<Matcher> {
    let conditions = match members.get("where") {
        None => Vec::new(),
        Some(value) => object(value, &format!("{path}.where"))?
            .iter()
            .map(|(path, value)| (path.clone(), value.clone()))
            .collect(),
    };
    Ok(Matcher {
        method: string(method, at)?.to_owned(),
        conditions,
    })
}

/// Lines of a readable length, `count` bytes in all, the last byte a line end.
fn noise(count: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (1..=count)
        .map(|at| if at.is_multiple_of(80) { b'\n' } else { b'.' })
        .collect();
    if let Some(last) = bytes.last_mut() {
        *last = b'\n';
    }
    bytes
}

fn known_keys(members: &Map<String, Value>, path: &str, known: &[&str]) -> Result<()> {
    match members.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(ScriptError::new(
            path,
            format!("unknown member `{key}`; known here: {}", known.join(", ")),
        )),
    }
}

fn required<'a>(members: &'a Map<String, Value>, path: &str, key: &str) -> Result<&'a Value> {
    members
        .get(key)
        .ok_or_else(|| ScriptError::new(path, format!("`{key}` is missing")))
}

fn optional<T>(
    members: &Map<String, Value>,
    path: &str,
    key: &str,
    read: impl FnOnce(&Value, &str) -> Result<T>,
) -> Result<Option<T>> {
    members
        .get(key)
        .map(|value| read(value, &format!("{path}.{key}")))
        .transpose()
}

fn object<'a>(value: &'a Value, path: &str) -> Result<&'a Map<String, Value>> {
    value
        .as_object()
        .ok_or_else(|| ScriptError::new(path, "expected an object"))
}

fn array<'a>(value: &'a Value, path: &str) -> Result<&'a [Value]> {
    value
        .as_array()
        .map(Vec::as_slice)
        .ok_or_else(|| ScriptError::new(path, "expected an array"))
}

fn string<'a>(value: &'a Value, path: &str) -> Result<&'a str> {
    value
        .as_str()
        .ok_or_else(|| ScriptError::new(path, "expected a string"))
}

fn whole(value: &Value, path: &str) -> Result<u64> {
    value
        .as_u64()
        .ok_or_else(|| ScriptError::new(path, "expected a whole number, not negative"))
}

fn size(value: &Value, path: &str, least: usize) -> Result<usize> {
    usize::try_from(whole(value, path)?)
        .ok()
        .filter(|size| *size >= least)
        .ok_or_else(|| ScriptError::new(path, format!("expected a number of at least {least}")))
}

fn millis(value: &Value, path: &str) -> Result<Duration> {
    whole(value, path).map(Duration::from_millis)
}

fn exit_code(value: &Value, path: &str) -> Result<i32> {
    value
        .as_i64()
        .and_then(|code| i32::try_from(code).ok())
        .filter(|code| (0..=255).contains(code))
        .ok_or_else(|| ScriptError::new(path, "expected an exit code from 0 to 255"))
}

fn bytes(value: &Value, path: &str) -> Result<Vec<u8>> {
    base64::decode(string(value, path)?).ok_or_else(|| {
        ScriptError::new(
            path,
            "expected base64 with the standard alphabet and padding",
        )
    })
}

fn flag(value: &Value, path: &str, step: Step) -> Result<Step> {
    if value == &Value::Bool(true) {
        return Ok(step);
    }
    Err(ScriptError::new(path, "expected `true`"))
}

fn limit(bytes: u64, path: &str) -> Result<()> {
    if bytes <= OUTPUT_LIMIT_BYTES {
        return Ok(());
    }
    Err(ScriptError::new(
        path,
        format!("one step may put out at most {OUTPUT_LIMIT_BYTES} bytes"),
    ))
}
