//! Writing canonical JSON in one pass over the text.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::mem;

use super::canonical::{CanonicalError, CanonicalProblem, DEPTH_CEILING, Element};
use super::number;
use super::text::{Unescaped, push_char, string_at, unescape};
use crate::wire::scan::plain_len;

/// Runs `body` on a text, which it must read as one value. Takes back what was written if that fails.
pub(super) fn run<'a>(
    json: &'a str,
    out: &mut Vec<u8>,
    max_depth: usize,
    room: &mut Room<'a>,
    body: impl FnOnce(&mut Writer<'a, '_>) -> Result<(), CanonicalError>,
) -> Result<(), CanonicalError> {
    let before = out.len();
    out.reserve(json.len());
    let mut writer = Writer {
        json,
        at: 0,
        copied: 0,
        out,
        room: mem::take(room),
        levels_left: max_depth.min(DEPTH_CEILING),
    };
    writer.skip_space();
    let result = body(&mut writer).and_then(|()| writer.finish());
    *room = writer.room;
    room.spans.clear();
    if result.is_err() {
        out.truncate(before);
    }
    result
}

/// What a writer works with. It can be used again for other texts, which saves allocations.
pub(crate) struct Room<'a> {
    /// The members of all objects that are open, innermost last.
    spans: Vec<Span<'a>>,
    scratch: Vec<u8>,
}

impl Room<'_> {
    /// Room for most texts, so that few make it grow.
    pub(crate) fn new() -> Self {
        Self {
            spans: Vec::with_capacity(16),
            scratch: Vec::new(),
        }
    }
}

impl Default for Room<'_> {
    /// None, as a placeholder.
    fn default() -> Self {
        Self {
            spans: Vec::new(),
            scratch: Vec::new(),
        }
    }
}

/// One member of an object that is being written.
#[derive(Clone, Copy)]
struct Span<'a> {
    /// The name as it stands in the text, without its quotes.
    name: &'a str,
    /// Whether the name has escapes.
    is_escaped: bool,
    /// Where the value begins in the text.
    value: usize,
    /// Where the member begins and ends in the output.
    from: usize,
    to: usize,
}

/// Reads the text once. What is canonical already is copied in runs as long as possible, members in
/// the order of the text; an object is put in order when it ends, if it needs to be.
pub(super) struct Writer<'a, 'o> {
    json: &'a str,
    /// How far the text has been read.
    at: usize,
    /// How far it has been written; from there to `at` it is canonical as it stands.
    copied: usize,
    out: &'o mut Vec<u8>,
    room: Room<'a>,
    levels_left: usize,
}

/// What became of reading a part of the text.
type Step<T = ()> = Result<T, CanonicalError>;

impl<'a> Writer<'a, '_> {
    pub(super) fn value(&mut self) -> Step {
        self.skip_space();
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'{') => {
                let (_, first) = self.members()?;
                self.room.spans.truncate(first);
                Ok(())
            }
            Some(b'[') => self.array(true, Self::value),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            _ => self.fail(CanonicalProblem::Syntax),
        }
    }

    /// As [`Writer::value`], but without a member of the object, if it is one.
    pub(super) fn value_without(&mut self, member: &str) -> Step {
        if self.peek() != Some(b'{') {
            return self.value();
        }
        let (start, first) = self.members()?;
        let before = self.room.spans.len();
        let mut index = 0;
        self.room.spans.retain(|span| {
            index += 1;
            index <= first || !span.is_named(member)
        });
        if self.room.spans.len() < before {
            self.rewrite(start, first);
        }
        self.room.spans.truncate(first);
        Ok(())
    }

    /// The elements of an array, without its brackets and commas.
    pub(super) fn elements(&mut self, each: &mut dyn FnMut(Element<'a>)) -> Step {
        if self.peek() != Some(b'[') {
            return self.fail(CanonicalProblem::NotArray);
        }
        self.array(false, |writer| {
            each(writer.element()?);
            Ok(())
        })
    }

    /// An array, whose brackets and commas are written if they are to be kept.
    fn array(&mut self, keep: bool, mut element: impl FnMut(&mut Self) -> Step) -> Step {
        self.enter()?;
        self.punctuation(keep);
        self.skip_space();
        if self.peek() != Some(b']') {
            loop {
                element(self)?;
                self.skip_space();
                match self.peek() {
                    Some(b',') => self.punctuation(keep),
                    Some(b']') => break,
                    _ => return self.fail(CanonicalProblem::Syntax),
                }
            }
        }
        self.punctuation(keep);
        self.levels_left += 1;
        Ok(())
    }

    /// An object. Leaves its members, in order, at the end of `spans`; gives the places where the object
    /// begins in the output and where its members begin in `spans`.
    fn members(&mut self) -> Step<(usize, usize)> {
        self.enter()?;
        let (start, first) = (self.out_len(), self.room.spans.len());
        let mut in_order = true;
        self.at += 1;
        self.skip_space();
        if self.peek() != Some(b'}') {
            loop {
                let span = self.member()?;
                if let Some(previous) = self.room.spans.get(first..).and_then(<[_]>::last) {
                    in_order = in_order && previous.order(&span) == Ordering::Less;
                }
                self.room.spans.push(span);
                self.skip_space();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b'}') => break,
                    _ => return self.fail(CanonicalProblem::Syntax),
                }
            }
        }
        self.at += 1;
        self.levels_left += 1;
        if !in_order {
            self.sort(first)?;
            self.rewrite(start, first);
        }
        Ok((start, first))
    }

    fn member(&mut self) -> Step<Span<'a>> {
        self.skip_space();
        if self.peek() != Some(b'"') {
            return self.fail(CanonicalProblem::Syntax);
        }
        let from = self.out_len();
        let (name, is_escaped) = self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return self.fail(CanonicalProblem::Syntax);
        }
        self.at += 1;
        self.skip_space();
        let value = self.at;
        self.value()?;
        Ok(Span {
            name,
            is_escaped,
            value,
            from,
            to: self.out_len(),
        })
    }

    fn sort(&mut self, first: usize) -> Step {
        let spans = self.room.spans.get_mut(first..).unwrap_or_default();
        spans.sort_unstable_by(Span::order);
        let duplicate = spans.windows(2).find_map(|pair| match pair {
            [one, next] if one.order(next) == Ordering::Equal => Some(one.value.max(next.value)),
            _ => None,
        });
        match duplicate {
            Some(offset_bytes) => Err(CanonicalError {
                problem: CanonicalProblem::DuplicateMember,
                offset_bytes,
            }),
            None => Ok(()),
        }
    }

    /// Writes the object that begins at `start` again, with the members in the order of their spans.
    fn rewrite(&mut self, start: usize, first: usize) {
        self.flush();
        self.room.scratch.clear();
        self.room
            .scratch
            .extend_from_slice(self.out.get(start..).unwrap_or_default());
        self.out.truncate(start);
        self.out.push(b'{');
        for (index, span) in self.room.spans.iter_mut().skip(first).enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            let member = self.room.scratch.get(span.from - start..span.to - start);
            span.from = self.out.len();
            self.out.extend_from_slice(member.unwrap_or_default());
            span.to = self.out.len();
        }
        self.out.push(b'}');
    }

    fn element(&mut self) -> Step<Element<'a>> {
        self.skip_space();
        let (source, start) = (self.at, self.out_len());
        let (mut name, mut has_input_schema) = (None, false);
        if self.peek() == Some(b'{') {
            let (_, first) = self.members()?;
            for span in self.room.spans.iter().skip(first) {
                if span.is_named("name") {
                    name = string_at(self.json, span.value);
                }
                has_input_schema |= span.is_named("inputSchema");
            }
            self.room.spans.truncate(first);
        } else {
            self.value()?;
        }
        Ok(Element {
            canonical: start..self.out_len(),
            source: self.json.get(source..self.at).unwrap_or_default(),
            name,
            has_input_schema,
        })
    }

    /// A string; gives its text without the quotes and whether that has escapes.
    fn string(&mut self) -> Step<(&'a str, bool)> {
        self.at += 1;
        let start = self.at;
        let mut is_escaped = false;
        loop {
            self.at += plain_len(self.json.as_bytes(), self.at);
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    is_escaped = true;
                    self.escape()?;
                }
                Some(0x7f..) => self.wide_char()?,
                _ => return self.fail(CanonicalProblem::Syntax),
            }
        }
        let body = self.json.get(start..self.at).unwrap_or_default();
        self.at += 1;
        Ok((body, is_escaped))
    }

    fn escape(&mut self) -> Step {
        let rest = self.json.get(self.at + 1..).unwrap_or_default();
        match rest.as_bytes().first() {
            // These are canonical already.
            Some(b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(_) => match unescape(rest) {
                Ok((char, length_bytes)) => {
                    self.flush();
                    push_char(self.out, char);
                    self.skip(1 + length_bytes);
                }
                Err(problem) => return self.fail(problem),
            },
            None => return self.fail(CanonicalProblem::Syntax),
        }
        Ok(())
    }

    /// One character that is not printable ASCII.
    fn wide_char(&mut self) -> Step {
        let char = self
            .json
            .get(self.at..)
            .and_then(|rest| rest.chars().next());
        let Some(char) = char else {
            return self.fail(CanonicalProblem::Syntax);
        };
        self.flush();
        push_char(self.out, char);
        self.skip(char.len_utf8());
        Ok(())
    }

    fn number(&mut self) -> Step {
        let rest = self.json.get(self.at..).unwrap_or_default();
        let Some(token) = number::token(rest) else {
            return self.fail(CanonicalProblem::Syntax);
        };
        if !token.is_integer {
            self.flush();
            if !number::push_double(self.out, token.text) {
                return self.fail(CanonicalProblem::NumberTooLarge);
            }
            self.skip(token.text.len());
        } else if token.text == "-0" {
            self.flush();
            self.skip(1);
            self.at += 1;
        } else {
            self.at += token.text.len();
        }
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Step {
        let rest = self.json.get(self.at..).unwrap_or_default();
        if !rest.starts_with(word) {
            return self.fail(CanonicalProblem::Syntax);
        }
        self.at += word.len();
        Ok(())
    }

    /// After the value only white space may follow.
    fn finish(&mut self) -> Step {
        self.skip_space();
        if self.at < self.json.len() {
            return self.fail(CanonicalProblem::Syntax);
        }
        self.flush();
        Ok(())
    }

    fn enter(&mut self) -> Step {
        match self.levels_left.checked_sub(1) {
            Some(left) => {
                self.levels_left = left;
                Ok(())
            }
            None => self.fail(CanonicalProblem::TooDeep),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.json.as_bytes().get(self.at).copied()
    }

    fn punctuation(&mut self, keep: bool) {
        if keep {
            self.at += 1;
        } else {
            self.flush();
            self.skip(1);
        }
    }

    fn skip_space(&mut self) {
        if let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.flush();
            while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
                self.at += 1;
            }
            self.copied = self.at;
        }
    }

    /// Leaves out what comes next. Everything before it must have been flushed.
    fn skip(&mut self, bytes: usize) {
        self.at += bytes;
        self.copied = self.at;
    }

    fn flush(&mut self) {
        let run = self.json.as_bytes().get(self.copied..self.at);
        self.out.extend_from_slice(run.unwrap_or_default());
        self.copied = self.at;
    }

    /// How long the output is once everything that was read is written.
    fn out_len(&self) -> usize {
        self.out.len() + (self.at - self.copied)
    }

    fn fail<T>(&self, problem: CanonicalProblem) -> Step<T> {
        Err(CanonicalError {
            problem,
            offset_bytes: self.at,
        })
    }
}

impl Span<'_> {
    /// By code points. Those of names without escapes compare like their UTF-8 bytes.
    fn order(&self, other: &Self) -> Ordering {
        if self.is_escaped || other.is_escaped {
            Unescaped(self.name).cmp(Unescaped(other.name))
        } else {
            self.name.as_bytes().cmp(other.name.as_bytes())
        }
    }

    fn is_named(&self, name: &str) -> bool {
        if self.is_escaped {
            Unescaped(self.name).eq(name.chars())
        } else {
            self.name == name
        }
    }
}
