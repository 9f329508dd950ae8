//! Member clusters: connections, live state and writes.
