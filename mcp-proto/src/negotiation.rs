//! Finding out which era a server speaks (R10–R18).
