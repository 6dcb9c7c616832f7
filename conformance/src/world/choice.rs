//! Where decisions come from.
//!
//! Everything random here is a function over a [`Choice`], so the same generator serves property tests
//! (which shrink the bytes) and fuzz targets (which mutate them).

/// A source of decisions.
pub trait Choice {
    /// One of `0..n`; 0 when `n` is 0. Zero is always the tamest decision, so that a source that runs
    /// dry ends in a well-behaved run.
    fn choose(&mut self, n: u32) -> u32;

    /// `true` once in `n` times; `false` when the source is dry.
    fn one_in(&mut self, n: u32) -> bool {
        n > 0 && self.choose(n) == n - 1
    }
}

/// Decisions read from bytes: one each where that is enough, four for more than 256 alternatives.
#[derive(Clone, Debug)]
pub struct Bytes<T> {
    bytes: T,
    at: usize,
}

impl<T: AsRef<[u8]>> Bytes<T> {
    /// Reads from the first byte on. When all are used, every decision is 0.
    pub const fn new(bytes: T) -> Self {
        Self { bytes, at: 0 }
    }

    fn next(&mut self) -> u32 {
        let byte = self.bytes.as_ref().get(self.at).copied();
        self.at += 1;
        u32::from(byte.unwrap_or(0))
    }
}

impl<T: AsRef<[u8]>> Choice for Bytes<T> {
    fn choose(&mut self, n: u32) -> u32 {
        match n {
            0 | 1 => 0,
            2..=256 => self.next() % n,
            _ => (0..4).fold(0_u32, |number, _| number << 8 | self.next()) % n,
        }
    }
}

/// One of several values.
///
/// # Panics
/// If there is none to choose from.
pub fn pick<'a, T>(choice: &mut (impl Choice + ?Sized), values: &'a [T]) -> &'a T {
    let index = choice.choose(u32::try_from(values.len()).unwrap_or(u32::MAX));
    &values[index as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_decide_and_then_the_tamest_alternative_does() {
        let mut bytes = Bytes::new([7, 255, 0, 0, 1, 44]);
        assert_eq!(bytes.choose(1), 0);
        assert_eq!(bytes.choose(5), 2);
        assert_eq!(bytes.choose(256), 255);
        assert_eq!(bytes.choose(1000), 300);
        assert_eq!(bytes.choose(9), 0);
        assert!(!bytes.one_in(2));
    }
}
