//! ferravex, protocol version 2.
