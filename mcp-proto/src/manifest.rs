//! What tools a peer has: all pages, replaced atomically, with digests (R20–R22).
