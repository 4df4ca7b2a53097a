//! Stories on a running server, from outside: the program is started, plays a story on itself, and says what the pure
//! rules say, byte for byte.

#![cfg(test)]

mod language;
mod library;
mod played;
mod random;
mod server;
mod stories;
