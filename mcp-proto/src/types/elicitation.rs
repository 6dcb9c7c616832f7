//! Elicitation: what a person is asked, and whether an answer fits (R30).

use alloc::string::String;

use super::content::optional_text;
use super::form::Form;
use super::form_text::TextFormat;
use super::input::{InputMethod, InputRequest};
use super::object::{Path, pick, present, text};
use crate::violation::{Fault, Violation};

const BROKEN: Violation = Violation::InputRequiredInvalid;

/// An `elicitation/create` request, read.
///
/// spec: 2026-07-28 client/elicitation#elicitation-requests
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Elicitation {
    /// A form to fill in; the answer passes through this client.
    Form(Form),
    /// A page to visit; what is entered there does not pass through this client.
    Url {
        /// Why.
        message: String,
        /// The address. Show it whole, with its [`url_host`] set off, and open it only with consent;
        /// never fetch it.
        url: String,
    },
}

impl Elicitation {
    /// Reads a request.
    ///
    /// # Errors
    /// [`Violation::InputRequiredInvalid`] when the request is of another method or mode, or lacks what
    /// its mode needs.
    pub fn read(request: &InputRequest) -> Result<Self, Fault> {
        let root = Path::root("inputRequests");
        let path = root.member(&request.key);
        if request.method != InputMethod::Elicitation {
            return Err(path.fault(BROKEN, "is no elicitation"));
        }
        let path = path.member("params");
        let names = ["message", "mode", "url", "requestedSchema"];
        let [message, mode, url, schema] =
            pick(request.params.as_raw(), names).map_err(|why| path.fault(BROKEN, why.words()))?;
        path.required_text(BROKEN, "message", message)?;
        let message = optional_text(message).unwrap_or_default().into_owned();
        match present(mode).map(text) {
            None => {}
            Some(Ok(mode)) if mode == "form" => {}
            Some(Ok(mode)) if mode == "url" => {
                let url = text(path.required_text(BROKEN, "url", url)?);
                let url = url.unwrap_or_default().into_owned();
                if !TextFormat::Uri.accepts(&url) {
                    return Err(path.member("url").fault(BROKEN, "is no address"));
                }
                return Ok(Self::Url { message, url });
            }
            Some(_) => return Err(path.member("mode").fault(BROKEN, "is unknown")),
        }
        let schema = path.required(BROKEN, "requestedSchema", schema)?;
        let place = path.member("requestedSchema");
        Form::read(message, schema, &place).map(Self::Form)
    }
}

/// The host of an address, without user name, password and port: what a person has to look at before
/// visiting it. Empty where there is none.
///
/// ```
/// use mcp_proto::types::url_host;
/// assert_eq!(url_host("https://bank.example:443@evil.example:8443/login?x"), "evil.example");
/// assert_eq!(url_host("https://[::1]:80/"), "[::1]");
/// assert_eq!(url_host("mailto:a@b"), "");
/// ```
#[must_use]
pub fn url_host(url: &str) -> &str {
    let Some((_, rest)) = url.split_once("://") else {
        return "";
    };
    // Browsers take a backslash for a slash.
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let authority = rest.split_at(end).0;
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let port = match host.rfind(']') {
        Some(bracket) => bracket + 1,
        None => host.rfind(':').unwrap_or(host.len()),
    };
    host.split_at(port).0
}
