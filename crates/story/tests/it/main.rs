//! The story language, and every story of `stories/`.

#![cfg(test)]

mod language;
mod stories;
