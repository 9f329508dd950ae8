//! Behaviour of server-side apply and its bookkeeping.
