//! What a sync decided is done.
