//! Ids of clusters.

pub use forewarn_types::ClusterId;
