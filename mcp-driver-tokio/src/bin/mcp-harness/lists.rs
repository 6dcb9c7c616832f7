//! `report`, `tools`, `resources`, `prompts`.

use std::borrow::Cow;

use mcp_proto::report::PeerState;
use mcp_proto::types::{Entry, Prompt, Tool};
use mcp_proto::{Listed, Operation, Outcome, Reply, Request};

use crate::args::Global;
use crate::exit::{Exit, Failure};
use crate::output::{self, json};
use crate::session::{self, Session};

/// The startup report; every server settles first.
pub(crate) fn report(session: &dyn Session, global: &Global) -> Result<Exit, Failure> {
    session::settle(session)?;
    let report = session.report();
    if global.json {
        output::print_json(report.to_json().as_str().into());
    } else {
        output::print(&report.to_string());
    }
    Ok(if report.has_failures() {
        Exit::PeerFailed
    } else {
        Exit::Good
    })
}

/// One of the lists, of all servers.
pub(crate) fn list(
    session: &dyn Session,
    global: &Global,
    names: &[String],
    request: Request,
) -> Result<Exit, Failure> {
    let ended = session::run(session, Operation::new(request));
    let reply = match ended.outcome {
        Outcome::Complete(reply) => reply,
        Outcome::Failed(error) => return Err(error.into()),
        Outcome::InputRequired(_) => return Ok(Exit::InputNeeded),
    };
    if global.json {
        output::print_json(json::list(&reply, names));
    } else {
        output::print(&text(&reply, names));
    }
    warn_of_failures(session);
    Ok(Exit::Good)
}

fn text(reply: &Reply, names: &[String]) -> String {
    match reply {
        Reply::Tools(list) => table("TOOL", names, list, Tool::description),
        Reply::Resources(list) => table("RESOURCE", names, list, |resource| {
            Some(resource.description().unwrap_or_else(|| resource.name()))
        }),
        Reply::ResourceTemplates(list) => table("TEMPLATE", names, list, |template| {
            Some(template.description().unwrap_or_else(|| template.name()))
        }),
        Reply::Prompts(list) => table("PROMPT", names, list, Prompt::description),
        _ => String::new(),
    }
}

/// Says which servers a list does without.
fn warn_of_failures(session: &dyn Session) {
    for peer in session.report().peers {
        if let Some(failure) = peer.failure.filter(|_| peer.state == PeerState::Failed) {
            let what = format!("{}: {}", peer.name, failure.message);
            output::note("warning", &output::advised(&what, &failure.remedy));
        }
    }
}

fn table<T: Entry>(
    heading: &str,
    names: &[String],
    list: &[Listed<T>],
    description: impl Fn(&T) -> Option<Cow<'_, str>>,
) -> String {
    let row = |listed: &Listed<T>| {
        let peer = names.get(listed.peer.index()).cloned().unwrap_or_default();
        let description = description(&listed.item).unwrap_or_default();
        let first = description.trim().lines().next().unwrap_or_default();
        [listed.name.clone(), peer, first.to_owned()]
    };
    let headings = [heading, "SERVER", "DESCRIPTION"];
    output::table(headings, list.iter().map(row).collect())
}
