//! The story language, and every story of `stories/`.

#![cfg(test)]

mod awaiting;
mod faults;
mod grammar;
mod language;
mod library;
mod preflight;
mod programs;
mod recordings;
mod repetition;
mod steps;
mod stories;
