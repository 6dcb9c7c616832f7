//! Files that the user names. A name may lead to a device that never ends, or to a pipe that nobody writes to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process;

/// The longest text that is read, in bytes.
const TEXT_BYTES_MAX: u64 = 64 << 20;
/// How many links are followed, one after the other, as most systems do.
const LINKS_MAX: u32 = 40;
/// How many names for a draft are tried, should others have left theirs behind.
const DRAFTS_MAX: u32 = 100;

/// The text of a file; of a pipe as well (`<(…)`), so that this waits for whoever writes to it.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    read_all(File::open(path)?)
}

/// The text of a regular file. Nothing else is opened.
pub(crate) fn read_regular(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(not_regular());
    }
    read(path)
}

/// The whole text, unless that is too long.
pub(crate) fn read_all(reader: impl Read) -> io::Result<String> {
    let mut text = String::new();
    let mut reader = reader.take(TEXT_BYTES_MAX + 1);
    reader.read_to_string(&mut text)?;
    if text.len() as u64 > TEXT_BYTES_MAX {
        let words = format!("longer than {TEXT_BYTES_MAX} bytes");
        return Err(io::Error::other(words));
    }
    Ok(text)
}

/// A file that is written later: its place is known to be writable now, and what stood there stays as it is
/// until all of the new text is written. For its owner only.
#[derive(Debug)]
pub(crate) struct Draft {
    target: PathBuf,
    temporary: PathBuf,
    file: File,
}

impl Draft {
    /// Makes sure that the file can be written.
    pub(crate) fn of(target: &Path) -> io::Result<Self> {
        if target == Path::new("-") {
            // Elsewhere it is a stream.
            let words = "- is no file here; a file of that name is ./-";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        }
        let target = followed(target)?;
        let target = match fs::canonicalize(&target) {
            Ok(found) => {
                if !fs::metadata(&found)?.is_file() {
                    return Err(not_regular());
                }
                // A new file would come into the place of one that is write-protected.
                OpenOptions::new().write(true).open(&found)?;
                found
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let directory = target.parent().unwrap_or_else(|| Path::new(""));
                directory.join(target.file_name().ok_or_else(not_regular)?)
            }
            Err(error) => return Err(error),
        };
        let (temporary, file) = create_beside(&target)?;
        Ok(Self {
            target,
            temporary,
            file,
        })
    }

    /// Puts the text into its place.
    pub(crate) fn keep(mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())?;
        self.file.sync_all()?;
        fs::rename(&self.temporary, &self.target)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // There is none after it was put into its place.
        drop(fs::remove_file(&self.temporary));
    }
}

/// Where links lead to, also when nothing is there yet: a link goes on naming the same file.
fn followed(target: &Path) -> io::Result<PathBuf> {
    let mut target = target.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&target) {
            Ok(next) => {
                let directory = target.parent().unwrap_or_else(|| Path::new(""));
                target = directory.join(next);
            }
            // Not a link, or not there.
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("too many links"))
}

fn create_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut number = 0;
    loop {
        let name = format!(".mcp-harness-{}-{number}.tmp", process::id());
        let path = target.with_file_name(name);
        match options.open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < DRAFTS_MAX => {
                number += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

fn not_regular() -> io::Error {
    io::Error::other("not a regular file")
}
