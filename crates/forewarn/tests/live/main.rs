//! Stories on a running server, from outside: the program is started, plays a story on itself, and says what the pure
//! rules say, byte for byte.

#[path = "../harness/patience.rs"]
mod patience;
#[cfg(test)]
mod random;
#[cfg(test)]
mod server;
#[cfg(test)]
mod stories;
