//! The protocol: a model of all its interleavings, and properties of its parts.

#![cfg(test)]

mod model;
