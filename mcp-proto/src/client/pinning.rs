//! Tools that wait for the application's consent (R21).

use alloc::vec::Vec;

use super::Client;
use crate::error::Error;
use crate::peer::{Peer, QuarantinedTool};

impl Client {
    /// The tools that are neither offered nor called until they are accepted: of servers with `pinTools`,
    /// those that are new since the first listing, or another one by now. Sorted by server and name.
    #[must_use]
    pub fn quarantined_tools(&self) -> Vec<QuarantinedTool> {
        let mut tools: Vec<_> = self
            .peers
            .iter()
            .flat_map(Peer::quarantined_tools)
            .collect();
        tools.sort_by(|a, b| (&a.peer, a.tool.name()).cmp(&(&b.peer, b.tool.name())));
        tools
    }

    /// Accepts quarantined tools of a server as they are now: those of these names (the server's own), or
    /// all of them. From now on they are offered and can be called, until they change again, whatever
    /// becomes of the server's process meanwhile. Compare what comes back with what was looked at: the
    /// server may have changed it since.
    ///
    /// # Errors
    /// [`Usage`](crate::ErrorKind::Usage): there is no such server, or a tool of some name is not
    /// quarantined; none was accepted then. [`Unavailable`](crate::ErrorKind::Unavailable): the client is closed.
    pub fn accept_tools(
        &mut self,
        peer: &str,
        names: Option<&[&str]>,
    ) -> Result<Vec<QuarantinedTool>, Error> {
        self.check_open()?;
        let peer = self.peer_id(peer)?;
        let accepted = match self.peer_mut(peer) {
            Some(peer) => peer.accept_tools(names),
            None => Ok(Vec::new()),
        };
        self.drain();
        accepted
    }
}
