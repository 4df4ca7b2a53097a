//! The HTTP client against servers that send exact bytes.

#![cfg(test)]

mod exchanges;
mod secure;
mod streams;
