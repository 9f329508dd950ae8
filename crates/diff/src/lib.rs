//! What differs between an object as it is and as it shall be.
