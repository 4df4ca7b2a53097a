//! The formats of the metadata endpoint.

#![cfg(test)]

mod captures;
mod editions;
mod instance;
mod problems;
mod reading;
mod start_requests;
mod support;
