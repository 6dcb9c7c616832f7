//! What servers ask for, and the answers on the command line.

use std::collections::BTreeSet;
use std::path::Path;

use mcp_proto::nearest::nearest;
use mcp_proto::types::{
    Elicitation, FieldKind, Form, FormField, InputMethod, InputRequest, InputRequired,
    InputResponse, InputResponses,
};
use mcp_proto::wire::Json;
use mcp_proto::{Ended, ErrorKind, Outcome};
use serde_json::{Value, json};

use crate::output::{advised, note};
use crate::program::quoted;

/// How many questions are shown, and as many samples. A server may ask any number.
const SHOWN_MAX: usize = 20;
/// What stands for a text in a sample.
const TEXT: &str = "…";

/// The answers of the command line, and what was asked for so far.
pub(crate) struct Answers {
    given: Vec<(String, Json)>,
    asked: BTreeSet<String>,
    /// What answers to the last question look like, if one of those that are given does not fit.
    samples: Option<String>,
}

impl Answers {
    pub(crate) fn new(given: &[(String, Json)]) -> Self {
        Self {
            given: given.to_vec(),
            asked: BTreeSet::new(),
            samples: None,
        }
    }

    /// The answers to all that is asked for; `None` when one is not given. Of two answers the last one counts.
    pub(crate) fn to(&mut self, input: &InputRequired) -> Option<InputResponses> {
        let keys = input.requests.iter().map(|request| request.key.clone());
        self.asked.extend(keys);
        self.samples = None;
        let mut answers = InputResponses::new();
        for request in &input.requests {
            let (_, json) = self.given.iter().rfind(|(key, _)| *key == request.key)?;
            let answer = InputResponse::raw(json.clone());
            if answer.check(request).is_err() {
                // The client refuses it, but does not know where it comes from.
                self.samples = Some(samples(input));
            }
            answers = answers.with(&*request.key, answer);
        }
        Some(answers)
    }

    /// What to do about an answer that does not fit.
    pub(crate) fn advise(&self, ended: &mut Ended) {
        if let (Outcome::Failed(error), Some(samples)) = (&mut ended.outcome, &self.samples)
            && error.kind() == ErrorKind::Usage
        {
            *error = error.clone().advise(&format!("give{samples}"));
        }
    }

    /// Names the answers that nobody asked for, now that it is known what was.
    pub(crate) fn warn_of_unused(&self, ended: &Ended) {
        // A call that failed may not have come to the question.
        if self.asked.is_empty() && matches!(ended.outcome, Outcome::Failed(_)) {
            return;
        }
        let keys: BTreeSet<&str> = self.given.iter().map(|(key, _)| key.as_str()).collect();
        for key in keys {
            if !self.asked.contains(key) {
                note("warning", &self.unused(key));
            }
        }
    }

    fn unused(&self, key: &str) -> String {
        let mut words = format!("--input {key} was not used: the server asked for ");
        let asked: Vec<&str> = self.asked.iter().map(String::as_str).collect();
        match nearest(key, asked.iter().copied()) {
            _ if asked.is_empty() => words.push_str("nothing"),
            Some(near) => words.push_str(&format!("{near:?}")),
            None => {
                let shown: Vec<&str> = asked.iter().copied().take(SHOWN_MAX).collect();
                words.push_str(&shown.join(", "));
                if let more @ 1.. = asked.len().saturating_sub(SHOWN_MAX) {
                    words.push_str(&format!(" and {more} more"));
                }
            }
        }
        words
    }
}

/// Shows what the server wants to know, and how to say it. `kept` is the file that the call is in.
pub(crate) fn ask(peer: Option<&str>, input: &InputRequired, is_call: bool, kept: Option<&Path>) {
    let peer = peer.map_or_else(String::new, |peer| format!("{peer}: "));
    for request in input.requests.iter().take(SHOWN_MAX) {
        let prompt = request.prompt();
        note("input", &format!("{peer}{}: {prompt}", request.key));
    }
    if let more @ 1.. = input.requests.len().saturating_sub(SHOWN_MAX) {
        note(
            "input",
            &format!("{peer}and {more} more; --json shows them all"),
        );
    }
    let samples = samples(input);
    let help = match kept {
        _ if !is_call => "Only `call` takes answers: there is no --input here.".to_owned(),
        Some(file) => {
            let file = quoted(&file.display().to_string());
            advised(
                "The call is kept",
                &format!("Go on with `mcp-harness call --resume {file}{samples}`."),
            )
        }
        None if input.requests.is_empty() => {
            "The server wants to be asked again later: repeat the call.".to_owned()
        }
        None => format!(
            "Repeat the call with{samples}; or keep it with --save-continuation FILE, and answer later."
        ),
    };
    note("help", &help);
}

/// An answer to each question, as it would be typed, with a space before each; of many the first ones.
fn samples(input: &InputRequired) -> String {
    let sample = |request: &InputRequest| {
        format!(
            " --input {}",
            quoted(&format!("{}={}", request.key, answer(request)))
        )
    };
    let mut samples: String = input.requests.iter().take(SHOWN_MAX).map(sample).collect();
    if input.requests.len() > SHOWN_MAX {
        samples.push(' ');
        samples.push_str(TEXT);
    }
    samples
}

/// What an answer looks like: with the fields that must be filled in.
fn answer(request: &InputRequest) -> Value {
    match request.method {
        InputMethod::Roots => json!({"roots": [{"uri": "file:///…"}]}),
        InputMethod::Sampling => json!({
            "role": "assistant",
            "model": TEXT,
            "content": {"type": "text", "text": TEXT},
        }),
        _ => match Elicitation::read(request) {
            Ok(Elicitation::Form(form)) => json!({"action": "accept", "content": content(&form)}),
            _ => json!({"action": "accept"}),
        },
    }
}

fn content(form: &Form) -> Value {
    let required: Vec<&FormField> = form.fields.iter().filter(|field| field.required).collect();
    let shown = match required.is_empty() {
        true => form.fields.iter().collect(),
        false => required,
    };
    let members = shown
        .into_iter()
        .map(|field| (field.name.clone(), value(field)));
    Value::Object(members.collect())
}

fn value(field: &FormField) -> Value {
    let default = field.default.as_ref();
    if let Some(default) = default.and_then(|json| serde_json::from_str(json.as_str()).ok()) {
        return default;
    }
    match &field.kind {
        FieldKind::Boolean => json!(true),
        FieldKind::Choice { options } => json!(options.first().map(|option| &option.value)),
        FieldKind::Choices { options, .. } => {
            json!(
                options
                    .first()
                    .map(|option| &option.value)
                    .into_iter()
                    .collect::<Vec<_>>()
            )
        }
        FieldKind::Number {
            minimum,
            is_integer,
            ..
        } => match minimum {
            Some(minimum) if !is_integer => json!(minimum),
            #[allow(clippy::cast_possible_truncation)] // a sample
            Some(minimum) => json!(minimum.ceil() as i64),
            None => json!(0),
        },
        _ => json!(TEXT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_proto::wire::Members;

    fn asked(requests: &Value) -> InputRequired {
        let text = json!({"resultType": "input_required", "inputRequests": requests}).to_string();
        let json = Json::parse(&text).unwrap();
        InputRequired::read(&json.view::<Members<'_>>().unwrap()).unwrap()
    }

    /// Whatever is asked for, the sample is an answer to it, but for the words.
    #[test]
    fn a_sample_is_an_answer() {
        let schema = json!({"type": "object", "required": ["a", "b", "c", "d", "e"], "properties": {
            "a": {"type": "boolean"},
            "b": {"type": "string", "enum": ["x", "y"]},
            "c": {"type": "integer", "minimum": 2.5},
            "d": {"type": "string", "default": "it's"},
            "e": {"type": "array", "items": {"type": "string", "enum": ["x"]}},
            "f": {"type": "string"},
        }});
        let form = json!({"message": "?", "requestedSchema": schema});
        let url = json!({"message": "?", "mode": "url", "url": "https://x/"});
        let sampling = json!({"maxTokens": 1, "messages": [
            {"role": "user", "content": {"type": "text", "text": "?"}}]});
        let requests = json!({
            "form": {"method": "elicitation/create", "params": form},
            "roots": {"method": "roots/list"},
            "sampling": {"method": "sampling/createMessage", "params": sampling},
            "url": {"method": "elicitation/create", "params": url},
        });
        let input = asked(&requests);
        for request in &input.requests {
            let answer = Json::parse(&answer(request).to_string()).unwrap();
            let fits = InputResponse::raw(answer).check(request);
            assert_eq!(fits, Ok(()), "{}", request.key);
        }
        let shown = samples(&input);
        let expected = r#" --input 'form={"action":"accept","content":{"a":true,"b":"x","c":3,"d":"it'\''s","e":["x"]}}' --input 'roots="#;
        assert!(shown.starts_with(expected), "{shown}");
    }
}
