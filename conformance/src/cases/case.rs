//! Case files, read and checked.

use std::fs;
use std::path::{Path, PathBuf};

use mcp_fake_server::Script;
use serde_json::{Map, Value, json};

use super::step::Step;

/// The name of a case's only peer, or of the one that it is about.
pub(super) const PEER: &str = "srv";

/// Every member of a case file.
const MEMBERS: [&str; 12] = [
    "certainty",
    "client",
    "config",
    "decided",
    "expect",
    "others",
    "pending",
    "reports",
    "server",
    "title",
    "variants",
    "why",
];
/// Those that a variant may have.
const VARIANT_MEMBERS: [&str; 6] = ["client", "config", "decided", "expect", "pending", "server"];

/// One way in which a server misbehaves, as it is played: a case file, or one variant of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Case {
    /// `folder/file`, and the variant in brackets where there is one.
    pub name: String,
    /// What the server does, in one sentence.
    pub title: String,
    /// The feature that is missing for it to hold.
    pub pending: Option<String>,
    pub(super) peers: Vec<CasePeer>,
    pub(super) client: Vec<Step>,
}

/// One peer of a case.
#[derive(Clone, Debug)]
pub(super) struct CasePeer {
    pub(super) name: String,
    /// Its configuration as in `mcpServers`, without what starts it.
    pub(super) config: Map<String, Value>,
    /// What the fake server plays.
    pub(super) script: Map<String, Value>,
    /// What must be true of it in the end.
    pub(super) expect: Map<String, Value>,
}

impl Case {
    /// Every case of a folder and of the folders in it, in the order of their names.
    ///
    /// # Errors
    /// The first file that cannot be read or is wrong, and why.
    pub fn load(folder: &Path) -> Result<Vec<Self>, String> {
        let mut files = Vec::new();
        collect(folder, &mut files)?;
        files.sort();
        let mut cases = Vec::new();
        for file in files {
            let text = fs::read_to_string(&file);
            let text = text.map_err(|error| format!("{}: {error}", file.display()))?;
            let name = file
                .strip_prefix(folder)
                .unwrap_or(&file)
                .with_extension("");
            let name = name.to_string_lossy().replace('\\', "/");
            cases.extend(Self::parse(&name, &text).map_err(|error| format!("{name}: {error}"))?);
        }
        Ok(cases)
    }

    /// The corpus that comes with this package.
    ///
    /// # Errors
    /// As [`Case::load`].
    pub fn corpus() -> Result<Vec<Self>, String> {
        Self::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases"))
    }

    /// The cases of one file: itself, or each of its variants.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(name: &str, text: &str) -> Result<Vec<Self>, String> {
        let mut file: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let file = object_mut(&mut file, "the case")?;
        known(file, &MEMBERS, "the case")?;
        head(file)?;
        let Some(variants) = file.remove("variants") else {
            decided(file, "the case")?;
            return Ok(vec![Self::read(name.to_owned(), file)?]);
        };
        let variants = object(&variants, "variants")?;
        if variants.is_empty() {
            return Err("variants: there is none".into());
        }
        let read = |(variant, changes): (&String, &Value)| {
            let at = format!("variants.{variant}");
            let changes = object(changes, &at)?;
            known(changes, &VARIANT_MEMBERS, &at)?;
            let mut merged = file.clone();
            merge(&mut merged, changes);
            decided(&merged, &at)?;
            Self::read(format!("{name} [{variant}]"), &merged)
                .map_err(|error| format!("{at}: {error}"))
        };
        variants.iter().map(read).collect()
    }

    fn read(name: String, file: &Map<String, Value>) -> Result<Self, String> {
        let mut peers = vec![CasePeer::read(PEER, file)?];
        if let Some(others) = file.get("others") {
            for (name, other) in object(others, "others")? {
                let at = format!("others.{name}");
                let other = object(other, &at)?;
                known(other, &["config", "expect", "server"], &at)?;
                peers.push(CasePeer::read(name, other).map_err(|error| format!("{at}: {error}"))?);
            }
        }
        let steps = file.get("client").and_then(Value::as_array);
        let steps = steps.ok_or("client: expected a list of steps")?.iter();
        let client = steps.enumerate().map(|(index, step)| {
            Step::parse(step).map_err(|error| format!("client[{index}]: {error}"))
        });
        Ok(Self {
            client: client.collect::<Result<_, _>>()?,
            title: text(file, "title")?,
            pending: file
                .get("pending")
                .map(|_| text(file, "pending"))
                .transpose()?,
            peers,
            name,
        })
    }

    /// The configuration as `mcpServers` has it. `start` gives what starts a peer: `command`, `args` and
    /// whatever else it needs.
    pub(super) fn config(&self, mut start: impl FnMut(&CasePeer) -> Value) -> String {
        let mut servers = Map::new();
        for peer in &self.peers {
            let mut members = peer.config.clone();
            if let Value::Object(start) = start(peer) {
                merge(&mut members, &start);
            }
            servers.insert(peer.name.clone(), members.into());
        }
        json!({ "mcpServers": servers }).to_string()
    }
}

impl CasePeer {
    fn read(name: &str, file: &Map<String, Value>) -> Result<Self, String> {
        let part = |key: &str| match file.get(key) {
            None => Ok(Map::new()),
            Some(value) => object(value, key).cloned(),
        };
        let peer = Self {
            name: name.to_owned(),
            config: part("config")?,
            script: part("server")?,
            expect: part("expect")?,
        };
        peer.script(|_| {})?;
        Ok(peer)
    }

    /// The server's script with changed options.
    pub(super) fn script(
        &self,
        options: impl FnOnce(&mut Map<String, Value>),
    ) -> Result<Script, String> {
        Script::from_json(&self.script_json(options)).map_err(|error| error.to_string())
    }

    /// The same as text.
    pub(super) fn script_json(&self, options: impl FnOnce(&mut Map<String, Value>)) -> String {
        let mut script = self.script.clone();
        let given = script
            .entry("options")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(given) = given {
            options(given);
        }
        Value::Object(script).to_string()
    }

    /// Whether a second process plays something else.
    pub(super) fn has_second_life(&self) -> bool {
        self.script.contains_key("respawn")
    }
}

/// What people need to know: every case has it.
fn head(file: &Map<String, Value>) -> Result<(), String> {
    text(file, "why")?;
    let certainty = text(file, "certainty")?;
    if !["certain", "likely", "policy"].contains(&certainty.as_str()) {
        return Err("certainty: expected certain, likely or policy".into());
    }
    let Some(reports) = file.get("reports") else {
        return Ok(());
    };
    let reports = reports.as_array().ok_or("reports: expected a list")?;
    for report in reports {
        let number = report.as_str().and_then(|text| text.split_once('#'));
        if number.is_none_or(|(place, number)| place.is_empty() || number.parse::<u64>().is_err()) {
            return Err(format!("reports: {report} is not of the form owner/repo#1"));
        }
    }
    Ok(())
}

/// Where sources disagree, a case says what was decided.
fn decided(file: &Map<String, Value>, at: &str) -> Result<(), String> {
    let is_policy = file.get("certainty").and_then(Value::as_str) == Some("policy");
    match (is_policy, file.contains_key("decided")) {
        (true, true) => text(file, "decided").map(drop),
        (false, false) => Ok(()),
        (true, false) => Err(format!("{at}: a policy case says what was `decided`")),
        (false, true) => Err(format!("{at}: only a policy case has something `decided`")),
    }
}

/// Every `.json` file below a folder.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let wrong = |error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            files.push(path);
        }
    }
    Ok(())
}

/// Objects are merged, everything else is replaced.
fn merge(into: &mut Map<String, Value>, changes: &Map<String, Value>) {
    for (key, change) in changes {
        match (into.get_mut(key), change) {
            (Some(Value::Object(old)), Value::Object(new)) if key != "server" => merge(old, new),
            _ => {
                into.insert(key.clone(), change.clone());
            }
        }
    }
}

pub(super) fn known(members: &Map<String, Value>, names: &[&str], at: &str) -> Result<(), String> {
    match members.keys().find(|key| !names.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(format!(
            "{at}: unknown member `{key}`; known: {}",
            names.join(", ")
        )),
    }
}

pub(super) fn object<'a>(value: &'a Value, at: &str) -> Result<&'a Map<String, Value>, String> {
    value
        .as_object()
        .ok_or_else(|| format!("{at}: expected an object"))
}

fn object_mut<'a>(value: &'a mut Value, at: &str) -> Result<&'a mut Map<String, Value>, String> {
    value
        .as_object_mut()
        .ok_or_else(|| format!("{at}: expected an object"))
}

fn text(file: &Map<String, Value>, key: &str) -> Result<String, String> {
    let text = file.get(key).and_then(Value::as_str);
    text.filter(|text| !text.is_empty())
        .map(str::to_owned)
        .ok_or_else(|| format!("{key}: expected a text"))
}
