//! Line framing (R1, R100).

use mcp_proto::wire::{Line, LineBuffer};
use proptest::prelude::*;

/// A line as it was handed out; how much of an over-long one had arrived depends on the chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Complete(Vec<u8>),
    TooLong(Vec<u8>),
}

fn seen(line: Line<'_>, limit_bytes: usize) -> Seen {
    match line {
        Line::Complete(line) => Seen::Complete(line.to_vec()),
        Line::TooLong {
            prefix,
            length_bytes,
        } => {
            assert!(length_bytes > limit_bytes && length_bytes >= prefix.len());
            Seen::TooLong(prefix.to_vec())
        }
    }
}

/// Feeds the chunks, reading at most `reads` lines of each, and checks what is promised of the memory.
fn split(chunks: &[&[u8]], limit_bytes: usize, reads: usize) -> Vec<Seen> {
    let mut buffer = LineBuffer::new(limit_bytes);
    let mut all = Vec::new();
    for chunk in chunks {
        let before = buffer.buffered_bytes();
        let mut lines = buffer.feed(chunk);
        let mut left = reads;
        while left > 0 {
            let Some(line) = lines.next() else {
                break;
            };
            all.push(seen(line, limit_bytes));
            left -= 1;
        }
        drop(lines);
        if left > 0 {
            // One byte more than the limit: the CR of a line end whose LF is still to come.
            assert!(buffer.buffered_bytes() <= limit_bytes.max(2) + 1);
        }
        assert!(buffer.buffered_bytes() <= before + chunk.len());
    }
    while let Some(line) = buffer.finish() {
        all.push(seen(line, limit_bytes));
    }
    assert_eq!(buffer.buffered_bytes(), 0);
    all
}

/// The same by the book: on the whole stream, with the standard library.
fn reference(stream: &[u8], limit_bytes: usize) -> Vec<Seen> {
    let stream = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
    stream
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter_map(|line| {
            if line.len() > limit_bytes {
                return Some(Seen::TooLong(line[..limit_bytes.min(1024)].to_vec()));
            }
            let is_blank = line.iter().all(|byte| b" \t\r".contains(byte));
            (!is_blank).then(|| Seen::Complete(line.to_vec()))
        })
        .collect()
}

fn cut<'a>(stream: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let (mut rest, mut chunks) = (stream, Vec::new());
    for size in sizes {
        let (chunk, after) = rest.split_at((*size).min(rest.len()));
        chunks.push(chunk);
        rest = after;
    }
    chunks.push(rest);
    chunks
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        3 => proptest::collection::vec(prop_oneof![Just(b'a'), Just(b' '), Just(b'{')], 0..12),
        3 => Just(b"\n".to_vec()),
        2 => Just(b"\r\n".to_vec()),
        1 => Just(b"\r".to_vec()),
        1 => Just(b"\xef\xbb\xbf".to_vec()),
        1 => Just(b"\xef\xbb".to_vec()),
        1 => (0_usize..3000).prop_map(|length| vec![b'x'; length]),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// R100: however the stream is cut and read, the lines are those of the whole stream.
    #[test]
    fn r100_any_chunking_gives_the_same_lines(
        stream in stream(),
        sizes in proptest::collection::vec(0_usize..64, 0..64),
        limit_bytes in prop_oneof![0_usize..16, 1000_usize..2500],
        reads in prop_oneof![Just(usize::MAX), 0_usize..3],
    ) {
        let expected = reference(&stream, limit_bytes);
        prop_assert_eq!(&split(&cut(&stream, &sizes), limit_bytes, reads), &expected);
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        prop_assert_eq!(&split(&bytes, limit_bytes, usize::MAX), &expected);
    }
}

/// R1: an over-long line is reported when the limit is crossed, not when the line ends, once only, and
/// without growing the buffer.
#[test]
fn r1_an_over_long_line_is_reported_at_once_and_skipped() {
    let mut buffer = LineBuffer::new(4);
    let mut lines = buffer.feed(b"{\"id\"");
    let expected = Line::TooLong {
        prefix: b"{\"id",
        length_bytes: 5,
    };
    assert_eq!(lines.next(), Some(expected));
    assert_eq!(lines.next(), None);
    drop(lines);
    assert_eq!(buffer.feed(&[b'x'; 10_000]).next(), None);
    assert_eq!(buffer.buffered_bytes(), 0);
    let mut lines = buffer.feed(b"tail\nnext\n");
    assert_eq!(lines.next(), Some(Line::Complete(b"next")));
    assert_eq!(lines.next(), None);
}

/// R100: a line of exactly the limit is no longer than the limit, with either line end.
#[test]
fn r100_the_limit_is_without_the_line_end() {
    for stream in ["abcd\n", "abcd\r\n", "abcd", "abcd\r"] {
        let expected = vec![Seen::Complete(b"abcd".to_vec())];
        assert_eq!(split(&[stream.as_bytes()], 4, 9), expected);
        let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        assert_eq!(split(&bytes, 4, 9), expected);
        assert_eq!(split(&bytes, 3, 9), vec![Seen::TooLong(b"abc".to_vec())]);
    }
}

/// A line that lies in one chunk is lent from that chunk, not from a copy.
#[test]
fn whole_lines_are_not_copied() {
    let mut buffer = LineBuffer::new(64);
    let chunk = b"one\ntwo\n";
    let mut lines = buffer.feed(chunk);
    for _ in 0..2 {
        let Some(Line::Complete(line)) = lines.next() else {
            panic!("a line");
        };
        assert!(chunk.as_ptr_range().contains(&line.as_ptr()));
    }
}

/// R1: the largest limit there is is one like any other.
#[test]
fn r1_no_limit_is_too_large() {
    let expected = vec![Seen::Complete(b"abc".to_vec())];
    assert_eq!(
        split(&[b"a", b"bc\n"], usize::MAX - 8, usize::MAX),
        expected
    );
    let mut buffer = LineBuffer::new(usize::MAX);
    assert!(buffer.feed(b"a").next().is_none());
    let mut lines = buffer.feed(b"bc\n");
    assert_eq!(
        lines.next().map(|line| seen(line, usize::MAX)),
        expected.into_iter().next()
    );
}
