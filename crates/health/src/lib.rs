//! The health of one live object, and the actions it offers.
