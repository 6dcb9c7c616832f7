//! What fuzzing has found worth keeping, once more: the corpora of `conformance/fuzz`, with any compiler.

use std::fs;
use std::path::PathBuf;

use conformance::fuzzing;

/// Runs a target on every file of its corpus, in the order of their names.
fn replay<E: std::fmt::Display>(target: &str, run: fn(&[u8]) -> Result<(), E>) {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let mut files: Vec<PathBuf> = fs::read_dir(corpus.join(target))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 20, "{} files are no corpus", files.len());
    for file in files {
        if let Err(failure) = run(&fs::read(&file).unwrap()) {
            panic!("{}: {failure}", file.display());
        }
    }
}

/// R1, R60, R100: lines, envelopes and ids.
#[test]
fn the_corpus_of_lines_holds() {
    replay("lines", fuzzing::lines);
}

/// R1, R2, R7, R40, R41, R90, R100: whole runs of the World.
#[test]
fn the_corpus_of_worlds_holds() {
    replay("world", fuzzing::world);
}
