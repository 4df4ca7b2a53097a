//! The metadata endpoint, seen from inside a machine: raw bytes over TCP, against a whole server with a frozen clock.

#[cfg(test)]
mod approvals;
#[cfg(test)]
mod callers;
#[cfg(test)]
mod checks;
#[cfg(test)]
mod connections;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod doors;
#[cfg(test)]
mod enrolment;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod instance;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod polls;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod support;
#[cfg(test)]
mod telemetry;
#[cfg(test)]
mod threads;
