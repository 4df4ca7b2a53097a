//! What an agent does about what it learns: documents, endings, peers and time go in, deeds come out.

#[cfg(test)]
mod approvals;
#[cfg(test)]
mod conditions;
#[cfg(test)]
mod lives;
#[cfg(test)]
mod peers;
#[cfg(test)]
mod phases;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod support;
#[cfg(test)]
mod undoing;
