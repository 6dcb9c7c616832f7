//! What the fuzz targets in `conformance/fuzz` run, as plain functions, so that their corpora are replayed
//! by `cargo test` with any compiler.

use std::collections::BTreeMap;

use mcp_proto::wire::{
    Answer, IdToken, Line, LineBuffer, Message, ResponseId, envelope, salvage_id,
};
use serde_json::value::RawValue;

use crate::schedules::{Failure, KINDS};

/// A whole run of the World. The first byte says what is checked, the second where the plan ends and the
/// schedule begins.
///
/// # Errors
/// What did not hold.
pub fn world(data: &[u8]) -> Result<(), Failure> {
    let [kind, place, rest @ ..] = data else {
        return Ok(());
    };
    // Those that run many worlds at once say less for their time.
    let kind = KINDS[match kind % 32 {
        0..26 => 0,
        26..29 => 1,
        other => usize::from(other) - 27,
    }];
    let (plan, schedule) = rest.split_at(rest.len() * usize::from(*place) / 256);
    kind.check(plan, schedule)
}

/// A stream of lines, cut in three ways: the lines are the same, what is held is bounded, and what is read
/// in a line stands there. The first byte chooses the limit, the second the number of cuts, which follow.
///
/// # Errors
/// What did not hold.
pub fn lines(data: &[u8]) -> Result<(), String> {
    let [limit, cuts, rest @ ..] = data else {
        return Ok(());
    };
    let limit = 1 + usize::from(*limit) * 8;
    let (cuts, stream) = rest.split_at(rest.len().min(usize::from(cuts % 32)));
    let whole = split(limit, std::iter::once(stream))?;
    let bytewise = split(limit, stream.chunks(1))?;
    let cut = split(
        limit,
        Cut {
            stream,
            cuts,
            at: 0,
        },
    )?;
    if bytewise != whole {
        return Err(format!("byte by byte {bytewise:?}\nas a whole {whole:?}"));
    }
    if cut != whole {
        return Err(format!("cut {cut:?}\nas a whole {whole:?}"));
    }
    for line in whole {
        if let Seen::Complete(line) = line {
            read(&line).map_err(|how| format!("{how}: {}", line.escape_ascii()))?;
        }
    }
    Ok(())
}

/// One line, without what depends on the cuts.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Complete(Vec<u8>),
    TooLong(Vec<u8>),
}

impl Seen {
    fn of(line: Line<'_>, limit: usize) -> Result<Self, String> {
        match line {
            Line::Complete(line) if line.len() > limit || line.contains(&b'\n') => Err(format!(
                "no line of at most {limit}: {}",
                line.escape_ascii()
            )),
            Line::Complete(line) => Ok(Self::Complete(line.to_vec())),
            Line::TooLong { length_bytes, .. } if length_bytes <= limit => {
                Err(format!("{length_bytes} of {limit} bytes are too long"))
            }
            Line::TooLong { prefix, .. } => Ok(Self::TooLong(prefix.to_vec())),
        }
    }
}

fn split<'a>(limit: usize, chunks: impl Iterator<Item = &'a [u8]>) -> Result<Vec<Seen>, String> {
    let mut buffer = LineBuffer::new(limit);
    let mut seen = Vec::new();
    for chunk in chunks {
        let mut lines = buffer.feed(chunk);
        while let Some(line) = lines.next() {
            seen.push(Seen::of(line, limit)?);
        }
        drop(lines);
        // A carriage return more, or a byte order mark that may still become one.
        let held = buffer.buffered_bytes();
        if held > limit + 3 {
            return Err(format!("{held} bytes are held, of {limit}"));
        }
    }
    while let Some(line) = buffer.finish() {
        seen.push(Seen::of(line, limit)?);
    }
    Ok(seen)
}

/// A stream in pieces of these sizes, again and again.
struct Cut<'a> {
    stream: &'a [u8],
    cuts: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Cut<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.stream.is_empty() {
            return None;
        }
        let size = match self.cuts {
            [] => 2,
            cuts => usize::from(cuts[self.at % cuts.len()]),
        };
        self.at += 1;
        // An empty read now and then is as good as any.
        let size = if self.at.is_multiple_of(64) {
            size.max(1)
        } else {
            size
        };
        let (piece, rest) = self.stream.split_at(size.min(self.stream.len()));
        self.stream = rest;
        Some(piece)
    }
}

/// What the envelope says of a line agrees with what a plain JSON parser finds in it.
fn read(line: &[u8]) -> Result<(), &'static str> {
    let salvaged = salvage_id(line);
    let message = match envelope::read(line) {
        Ok(message) => message,
        Err(rejected) => {
            let detail = rejected.fault.to_string();
            return match detail.chars().any(char::is_control) || detail.len() > 400 {
                true => Err("a fault is not printable, or too long"),
                false => Ok(()),
            };
        }
    };
    let Ok(members) = serde_json::from_slice::<BTreeMap<String, Box<RawValue>>>(line) else {
        return Err("it is no object with readable names");
    };
    let id = members.get("id").map(|id| id.get());
    match message {
        Message::Response(response) => {
            let same = match response.id {
                ResponseId::Absent => id.is_none(),
                ResponseId::Null => id == Some("null"),
                ResponseId::Token(token) => id == Some(token.as_str()) && is_exact(token),
            };
            let answer = match &response.answer {
                Answer::Result(_) => "result",
                Answer::Error(_) => "error",
            };
            let number = response.id.as_u64();
            match () {
                () if !same => Err("it has another id"),
                () if !members.contains_key(answer) => Err("it has no such answer"),
                () if members.contains_key("method") => Err("a response has no method"),
                () if number.is_some() && !line.contains(&b'\\') && salvaged != number => {
                    Err("the id would not be found again if the line were broken")
                }
                () => Ok(()),
            }
        }
        Message::Request(request) => match id == Some(request.id.as_str()) {
            true if members.contains_key("method") && is_exact(request.id) => Ok(()),
            _ => Err("a request has an id and a method"),
        },
        Message::Notification(_) => match id.is_none() && members.contains_key("method") {
            true => Ok(()),
            false => Err("a notification has a method and no id"),
        },
    }
}

/// A number is only one if it is written as this client writes it.
fn is_exact(token: IdToken<'_>) -> bool {
    token
        .as_u64()
        .is_none_or(|number| number.to_string() == token.as_str())
}
