//! Explanations and previews, seen from outside.

#![cfg(test)]

mod explanations;
mod modes;
mod previews;
mod tale;
mod troubles;
