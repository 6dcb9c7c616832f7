//! What the configuration asks of this machine: variables, and where programs are.

use std::path::Path;

use mcp_proto::Config;
use mcp_proto::config::{Pinned, Program};

/// Resolves the commands of a configuration here and now.
pub(crate) fn pin(config: Config) -> Pinned {
    config.pin(&mut |name| std::env::var(name).ok(), &mut find)
}

/// The absolute path of the first candidate that is an executable file.
fn find(program: Program<'_>) -> Option<String> {
    let found = program
        .candidates()
        .into_iter()
        .find(|file| is_executable(Path::new(file)))?;
    std::path::absolute(found)
        .ok()?
        .into_os_string()
        .into_string()
        .ok()
}

fn is_executable(file: &Path) -> bool {
    let Ok(metadata) = file.metadata() else {
        return false;
    };
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 == 0 {
        return false;
    }
    metadata.is_file()
}
