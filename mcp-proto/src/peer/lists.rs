//! Lists, page by page, and what is remembered of them.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::active::{Active, Pages, Stage};
use super::requests::Owner;
use super::sending::Extra;
use super::{MANIFEST, Peer, Phase};
use crate::cache::{CacheKind, Ticket};
use crate::error::{Cause, Ran};
use crate::identity::Params;
use crate::ids::{OperationId, PeerId};
use crate::manifest::{Changes, Installed, List, Listing, Rejection, Step};
use crate::operation::{Listed, News, Outcome, Reply, Request};
use crate::time::Instant;
use crate::types::{
    CacheHint, Entry, ListFault, ListPage, Prompt, ReadResourceResult, Resource, ResourceTemplate,
    Tool,
};
use crate::wire::{self, Json, Members};

/// How many tools a note names.
const NAMED_MAX: usize = 8;

impl Peer {
    /// Answers a list from what is known and fresh, or asks for its first page.
    pub(super) fn start_list(&mut self, operation: OperationId, active: Box<Active>, now: Instant) {
        let known = match &active.request {
            Request::ListTools
                if operation != MANIFEST
                    && (self.manifest.fresh_at(now)
                        || active.shares_listing && self.manifest.is_known()) =>
            {
                Some(self.tools_reply())
            }
            Request::ListResources => self.cached::<Resource>(now).map(Reply::Resources),
            Request::ListResourceTemplates => self
                .cached::<ResourceTemplate>(now)
                .map(Reply::ResourceTemplates),
            Request::ListPrompts => self.cached::<Prompt>(now).map(Reply::Prompts),
            _ => None,
        };
        if let Some(reply) = known {
            self.end(operation, active, Outcome::Complete(reply));
            return;
        }
        let limits = self.config.limits.clone();
        let pages = match &active.request {
            Request::ListResources => {
                Pages::Resources(Listing::start(0, &limits), self.ticket::<Resource>())
            }
            Request::ListResourceTemplates => Pages::Templates(
                Listing::start(0, &limits),
                self.ticket::<ResourceTemplate>(),
            ),
            Request::ListPrompts => {
                Pages::Prompts(Listing::start(0, &limits), self.ticket::<Prompt>())
            }
            _ => Pages::Tools(self.manifest.begin(&limits)),
        };
        self.ask_page(operation, active, pages, None);
    }

    fn ask_page(
        &mut self,
        operation: OperationId,
        mut active: Box<Active>,
        pages: Pages,
        cursor: Option<&str>,
    ) {
        let params = cursor.map(|cursor| {
            Params::build(|object| {
                object.string("cursor", cursor);
            })
        });
        let owner = Owner::Operation(operation);
        let extra = Extra {
            progress_token: None,
            caller_meta: active.meta.as_ref(),
            context: Some(&active.context),
        };
        let request = self.send_control(owner, active.method(), params.as_ref(), extra);
        active.handed_over.get_or_insert(self.now);
        active.stage = Stage::Paging { request, pages };
        self.operations.insert(operation, active);
    }

    /// Takes one page: asks for the next, or ends.
    pub(super) fn on_page(
        &mut self,
        operation: OperationId,
        mut active: Box<Active>,
        members: &Members<'_>,
        now: Instant,
    ) {
        let Stage::Paging { pages, .. } = core::mem::replace(&mut active.stage, Stage::Queued)
        else {
            return;
        };
        match pages {
            Pages::Tools(listing) => {
                let step = listing.on_page(members, now);
                self.on_step(operation, active, step, Pages::Tools, |peer, mut list| {
                    if !peer.reads_cache_hints() {
                        list.fresh_until = now;
                    }
                    peer.install(list);
                    // Nobody else asked for the peer's own reading.
                    match operation {
                        MANIFEST => Reply::Settled,
                        _ => peer.tools_reply(),
                    }
                });
            }
            Pages::Resources(listing, ticket) => {
                let step = listing.on_page(members, now);
                let again = ticket.clone();
                let next = |listing| Pages::Resources(listing, ticket);
                self.on_step(operation, active, step, next, |peer, list| {
                    Reply::Resources(peer.keep(list, again, now))
                });
            }
            Pages::Templates(listing, ticket) => {
                let step = listing.on_page(members, now);
                let again = ticket.clone();
                let next = |listing| Pages::Templates(listing, ticket);
                self.on_step(operation, active, step, next, |peer, list| {
                    Reply::ResourceTemplates(peer.keep(list, again, now))
                });
            }
            Pages::Prompts(listing, ticket) => {
                let step = listing.on_page(members, now);
                let again = ticket.clone();
                let next = |listing| Pages::Prompts(listing, ticket);
                self.on_step(operation, active, step, next, |peer, list| {
                    Reply::Prompts(peer.keep(list, again, now))
                });
            }
        }
    }

    fn on_step<T: Entry>(
        &mut self,
        operation: OperationId,
        active: Box<Active>,
        step: Step<T>,
        next: impl FnOnce(Listing<T>) -> Pages,
        done: impl FnOnce(&mut Self, List<T>) -> Reply,
    ) {
        match step {
            Step::Next { cursor, listing } => {
                self.ask_page(operation, active, next(listing), Some(&cursor));
            }
            Step::Done(list) => {
                let reply = done(self, list);
                self.end(operation, active, Outcome::Complete(reply));
            }
            Step::Failed(fault) => {
                if let ListFault::Violation(fault) = &fault {
                    self.degrade(fault);
                }
                let cause = fault.into_cause(active.method());
                let error = self.error(cause).ran(Ran::No);
                self.end(operation, active, Outcome::Failed(error));
            }
        }
    }

    /// The server does not know the list method: nothing of the kind is there. That is a note, not a
    /// failure, whatever was declared (R18).
    pub(super) fn end_without_list(
        &mut self,
        operation: OperationId,
        active: Box<Active>,
        now: Instant,
    ) {
        let method = active.method();
        self.note(format!(
            "answers {method} with \"method not found\": taken as an empty list"
        ));
        let mut members = Members::default();
        let member = match &active.request {
            Request::ListResources => Resource::MEMBER,
            Request::ListResourceTemplates => ResourceTemplate::MEMBER,
            Request::ListPrompts => Prompt::MEMBER,
            _ => Tool::MEMBER,
        };
        let empty: &RawValue = serde_json::from_str("[]").unwrap_or(RawValue::NULL);
        members.insert(member.into(), empty);
        self.on_page(operation, active, &members, now);
    }

    /// Puts a new manifest in force and reports what is wrong with it (R21, R22).
    fn install(&mut self, list: List<Tool>) {
        let is_first = !self.manifest.is_known();
        let (installed, quarantines) = self.install_pinned(list);
        self.schemas.clear();
        if let Installed::Replaced(mut changes) = installed
            && !is_first
        {
            // What is quarantined is not gone, and is reported as what it is.
            changes.removed.retain(|name| !self.pins.holds(name));
            if !changes.is_empty() {
                self.note(describe(&changes));
            }
            if !changes.is_empty() || quarantines {
                self.deliver(News::PeerChanged { peer: self.id });
            }
        }
        // A peer whose first listing failed is well again, whoever asked for this one.
        if matches!(self.phase, Phase::Failed(_)) {
            self.phase = Phase::Ready;
            self.settle();
        }
        let bare: Vec<&str> = self
            .manifest
            .tools()
            .iter()
            .filter(|tool| !tool.has_input_schema())
            .map(Tool::name)
            .take(NAMED_MAX)
            .collect();
        if !bare.is_empty() {
            let names = wire::printable(bare.join(", ").as_bytes(), 200);
            self.note(format!("tools without an input schema: {names}"));
        }
        let faults: Vec<_> = self
            .manifest
            .rejected()
            .iter()
            .filter_map(|rejected| match &rejected.reason {
                Rejection::Duplicate(fault) => Some(fault.clone()),
                _ => None,
            })
            .collect();
        for fault in &faults {
            self.degrade(fault);
        }
    }

    pub(crate) fn tools_reply(&self) -> Reply {
        Reply::Tools(listed(self.id, self.manifest.tools().to_vec()))
    }

    fn ticket<T: Entry>(&self) -> Option<Ticket> {
        self.cache.ticket(T::METHOD, "{}")
    }

    /// The whole list, if one is kept and fresh.
    fn cached<T: Entry>(&mut self, now: Instant) -> Option<Vec<Listed<T>>> {
        let ticket = self.ticket::<T>()?;
        let items = self.config.limits.items;
        let mut members = Members::default();
        members.insert(T::MEMBER.into(), self.cache.get(&ticket, now)?.as_raw());
        let page = ListPage::<T>::read(&members, items).ok()?;
        Some(listed(self.id, page.items))
    }

    fn keep<T: Entry>(
        &mut self,
        list: List<T>,
        ticket: Option<Ticket>,
        now: Instant,
    ) -> Vec<Listed<T>> {
        let hint = CacheHint {
            ttl: list.fresh_until.since(now),
            scope: list.scope,
        };
        if let (Some(ticket), false) = (ticket, hint.ttl.is_zero())
            && self.reads_cache_hints()
        {
            let entries: Vec<&Json> = list.items.iter().map(Entry::raw).collect();
            if let Ok(value) = Json::encode(&entries) {
                self.cache.store(&ticket, value, hint, now);
            }
        }
        listed(self.id, list.items)
    }

    /// The answer to a read, if one is kept and fresh.
    pub(super) fn cached_read(
        &mut self,
        ticket: &Ticket,
        now: Instant,
    ) -> Option<ReadResourceResult> {
        let members = self.cache.get(ticket, now)?.view::<Members<'_>>().ok()?;
        ReadResourceResult::read(&members).ok()
    }

    /// Whether what looks like a cache hint is one in the revision that is spoken.
    fn reads_cache_hints(&self) -> bool {
        let dialect = self.session.as_ref().map(|session| &session.dialect);
        dialect.is_some_and(|dialect| dialect.cache_hints)
    }

    /// Keeps the answer to a read for as long as the server allows.
    pub(super) fn keep_read(&mut self, ticket: &Ticket, members: &Members<'_>, now: Instant) {
        let hint = CacheHint::read(members);
        if !hint.ttl.is_zero()
            && self.reads_cache_hints()
            && let Ok(value) = Json::encode(members)
        {
            self.cache.store(ticket, value, hint, now);
        }
    }

    /// A change notification: what it names is not fresh any more (R70).
    pub(super) fn invalidate(&mut self, method: &str, params: Option<&RawValue>) {
        match method {
            "notifications/tools/list_changed" => self.manifest.invalidate(),
            "notifications/resources/list_changed" => self.cache.invalidate(CacheKind::Resources),
            "notifications/prompts/list_changed" => self.cache.invalidate(CacheKind::Prompts),
            _ => match params.and_then(|params| crate::types::text_member(params, "uri")) {
                Some(uri) => self.cache.invalidate_resource(&uri),
                None => self.cache.invalidate(CacheKind::Reads),
            },
        }
    }

    /// Remembers something odd that is no failure; each text once.
    pub(crate) fn note(&mut self, note: String) {
        let note = self.redact(&note);
        if !self.notes.contains(&note) && self.notes.len() < 32 {
            self.notes.push(note);
        }
    }

    pub(super) fn no_such_tool(&self, tool: &str) -> Cause {
        let manifest_digest = self.manifest.digest().unwrap_or_default().into();
        let is_quarantined = self.pins.holds(tool);
        let tool = tool.into();
        if is_quarantined {
            return Cause::Quarantined {
                tool,
                manifest_digest,
            };
        }
        Cause::CapabilityMissing {
            tool,
            manifest_digest,
        }
    }
}

/// How the tools differ from those before, for the report (R21).
fn describe(changes: &Changes) -> String {
    let kinds = [
        ("added", &changes.added),
        ("removed", &changes.removed),
        ("changed", &changes.changed),
    ];
    let kinds: Vec<String> = kinds
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(kind, names)| format!("{kind} {}", shown(names)))
        .collect();
    format!("the tools changed after the start: {}", kinds.join("; "))
}

/// The first of these names, fit for a report.
fn shown(names: &[String]) -> String {
    let first = names.split_at(names.len().min(NAMED_MAX)).0;
    let text = wire::printable(first.join(", ").as_bytes(), 200);
    match names.len().saturating_sub(NAMED_MAX) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

/// A list under the server's own names.
fn listed<T: Entry>(peer: PeerId, items: Vec<T>) -> Vec<Listed<T>> {
    items
        .into_iter()
        .map(|item| Listed {
            name: item.key().into(),
            peer,
            item,
        })
        .collect()
}
