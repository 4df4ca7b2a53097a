//! What settings mean, and what is wrong with them.
