//! The fleet file of a new server, with a commit for each of its pieces.
//!
//! A file of several commits is first tried in memory, so that it is rejected before anything is stored. While it is
//! loaded, the data directory has a mark with the fingerprint of the file: if the server ends before the last commit,
//! the next start with the same file continues.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use forewarn_control::{
    ClusterId, Difference, Fleet, FleetPiece, NamedCommand, TargetCluster, UnlistedObjects, difference,
    refused_place,
};
use forewarn_lifecycle::Seed;
use sha2::{Digest, Sha256};

use crate::clock::{Clock, ClockPlan, Speed};
use crate::control_handle::ControlHandle;
use crate::long_work::run_long_work;
use crate::snapshot::State;
use crate::start_error::StartError;

/// Longest wait for the owner of the default cluster of a realm, and pause between two looks.
const OWNER_WAIT: Duration = Duration::from_secs(30);
const OWNER_PAUSE: Duration = Duration::from_millis(20);

/// Name of the mark in the data directory.
const MARK: &str = "fleet.loading";

/// A simulated server in memory with this fleet, to find out whether the rules accept it.
///
/// # Errors
/// Returns an error if the fleet is rejected.
pub async fn control_with_fleet(fleet: &Fleet) -> Result<ControlHandle, StartError> {
    let plan = ClockPlan::Virtual { start: None, speed: Speed(0) };
    let control = ControlHandle::simulated(Seed([0; 16]), Clock::new_for(plan));
    admit_fleet_if_empty(&control, fleet).await?;
    Ok(control)
}

/// Adds a fleet to an empty cluster. A cluster that is not empty stays unchanged.
///
/// # Errors
/// Returns an error if the fleet is rejected.
pub async fn admit_fleet_if_empty(control: &ControlHandle, fleet: &Fleet) -> Result<(), StartError> {
    load_fleet(control, fleet, None).await
}

/// Adds a fleet to an empty cluster, or continues to: a cluster that is not empty stays unchanged, unless the data
/// directory has the mark of this fleet.
pub(crate) async fn load_fleet(
    control: &ControlHandle,
    fleet: &Fleet,
    data_dir: Option<&Path>,
) -> Result<(), StartError> {
    let mark = data_dir.map(|directory| LoadingMark { path: directory.join(MARK), directory });
    let is_empty = |state: &State<'_>| {
        state.cluster.hosts().next().is_none() && state.cluster.tenants().next().is_none()
    };
    let continues = match &mark {
        Some(mark) => mark.is_of(fleet)?,
        None => false,
    };
    if !continues && !control.look(is_empty)? {
        return Ok(());
    }
    let pieces = fleet.pieces();
    if pieces.len() > 1 {
        let whole = fleet.clone();
        run_long_work(move || whole.try_in_memory(TargetCluster::Empty)).await?;
        if let Some(mark) = &mark {
            mark.write(&fingerprint(fleet))?;
        }
    }
    load_pieces(control, fleet, &pieces).await?;
    match mark {
        Some(mark) if pieces.len() > 1 => mark.remove(),
        Some(_) | None => Ok(()),
    }
}

/// Adds a fleet to a realm that this server has created, or continues to. Other servers leave it alone: two that load at
/// the same time would reject each other.
pub(crate) async fn load_realm_fleet(
    control: &ControlHandle,
    fleet: &Fleet,
    data_dir: &Path,
    is_new: bool,
) -> Result<(), StartError> {
    let mark = LoadingMark { path: data_dir.join(MARK), directory: data_dir };
    let pieces = fleet.pieces();
    if is_new && !pieces.is_empty() {
        mark.write(&fingerprint(fleet))?;
    }
    if !mark.is_of(fleet)? {
        return Ok(());
    }
    let whole = fleet.clone();
    run_long_work(move || whole.try_in_memory(TargetCluster::Empty)).await?;
    owner_of_default(control).await?;
    load_pieces(control, fleet, &pieces).await?;
    mark.remove()
}

/// Waits until the default cluster has an owner, which decides about the fleet.
async fn owner_of_default(control: &ControlHandle) -> Result<(), StartError> {
    let owned = async {
        while control.cluster_owner(ClusterId::DEFAULT).is_none() {
            tokio::time::sleep(OWNER_PAUSE).await;
        }
    };
    tokio::time::timeout(OWNER_WAIT, owned).await.map_err(|_| StartError::NoOwner)
}

async fn load_pieces(
    control: &ControlHandle,
    fleet: &Fleet,
    pieces: &[FleetPiece],
) -> Result<(), StartError> {
    for piece in pieces {
        control.confirm_reads().await?;
        load_piece(control, &fleet.piece(piece), piece).await?;
    }
    Ok(())
}

/// Commits one piece of a fleet file. Entries that are there already stay.
async fn load_piece(control: &ControlHandle, part: &Fleet, piece: &FleetPiece) -> Result<(), StartError> {
    let compare = |state: &State<'_>| state.with_fleet(|now| difference(now, part, UnlistedObjects::Keep));
    let differences = control.look(compare)??;
    // A machine that was moved since an interrupted load stays where it is.
    let differences: Vec<_> = differences.into_iter().filter(|one| !is_move(one)).collect();
    let commands: Vec<_> = differences.iter().filter_map(|one| one.command.clone()).collect();
    if commands.is_empty() {
        return Ok(());
    }
    let Err(error) = control.run_commands(commands.clone()).await else { return Ok(()) };
    Err(match control.find_refused(&commands) {
        Some(refused) => {
            let place = piece.in_file(&refused_place(&differences, &refused));
            StartError::RefusedEntry(place, refused.error)
        }
        None => StartError::Refused(error),
    })
}

fn is_move(difference: &Difference) -> bool {
    matches!(difference.command, Some(NamedCommand::Move { .. }))
}

/// A fingerprint of a fleet.
fn fingerprint(fleet: &Fleet) -> String {
    let mut hash = Sha256::new();
    for piece in fleet.pieces() {
        hash.update(serde_json::to_vec(&fleet.piece(&piece)).unwrap_or_default());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The mark of a fleet that is being loaded: a file in the data directory.
struct LoadingMark<'a> {
    path: PathBuf,
    directory: &'a Path,
}

impl LoadingMark<'_> {
    /// Returns true if this fleet is being loaded. The mark of another one is removed: it is not continued any more.
    fn is_of(&self, fleet: &Fleet) -> Result<bool, StartError> {
        match self.read()? {
            Some(former) if former == fingerprint(fleet) => Ok(true),
            Some(_) => {
                tracing::warn!("an earlier fleet file was not loaded completely");
                self.remove()?;
                Ok(false)
            }
            None => Ok(false),
        }
    }

    /// The fingerprint of the fleet that is being loaded, if one is.
    fn read(&self) -> Result<Option<String>, StartError> {
        match fs::read_to_string(&self.path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.problem(error)),
        }
    }

    /// Writes the mark, durably.
    fn write(&self, fingerprint: &str) -> Result<(), StartError> {
        let written = fs::write(&self.path, fingerprint).and_then(|()| File::open(&self.path)?.sync_all());
        written.and_then(|()| self.sync()).map_err(|error| self.problem(error))
    }

    fn remove(&self) -> Result<(), StartError> {
        fs::remove_file(&self.path).and_then(|()| self.sync()).map_err(|error| self.problem(error))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(self.directory)?.sync_all()
    }

    fn problem(&self, error: io::Error) -> StartError {
        StartError::LoadingMark(self.path.clone(), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five pieces.
    fn large() -> Fleet {
        let vm = |number| format!("[[vm]]\nname = 'v{number}'\nhost = 'h{}'\n", number % 3);
        let vms: String = (0..1_100).map(vm).collect();
        Fleet::parse(&format!("host = [{{ name = 'h0' }}, {{ name = 'h1' }}, {{ name = 'h2' }}]\n{vms}"))
            .unwrap()
    }

    fn in_memory() -> ControlHandle {
        let plan = ClockPlan::Virtual { start: None, speed: Speed(0) };
        ControlHandle::simulated(Seed([0; 16]), Clock::new_for(plan))
    }

    fn machines(control: &ControlHandle) -> usize {
        control.look(|state| state.cluster.machines().count()).unwrap()
    }

    #[tokio::test]
    async fn a_load_that_was_interrupted_goes_on_with_the_same_file() {
        let (directory, fleet) = (tempfile::tempdir().unwrap(), large());
        let mark = directory.path().join(MARK);
        for (content, expected) in
            [(None, 250), (Some("another file".to_owned()), 250), (Some(fingerprint(&fleet)), 1_100)]
        {
            let control = in_memory();
            let first = &fleet.pieces()[0];
            load_piece(&control, &fleet.piece(first), first).await.unwrap();
            content.iter().for_each(|content| fs::write(&mark, content).unwrap());
            load_fleet(&control, &fleet, Some(directory.path())).await.unwrap();
            assert_eq!(machines(&control), expected);
            assert!(!mark.exists(), "neither a complete load nor another file keeps a mark");
        }
    }

    #[tokio::test]
    async fn a_large_file_that_is_rejected_leaves_nothing() {
        let (directory, mut fleet) = (tempfile::tempdir().unwrap(), large());
        fleet.vms[1_050].host = "h9".to_owned();
        let control = in_memory();
        let error = load_fleet(&control, &fleet, Some(directory.path())).await.unwrap_err();
        assert_eq!(error.entry().map(forewarn_control::FleetPosition::pointer), Some("/vm/1050/host"));
        assert_eq!(machines(&control), 0);
        assert!(!directory.path().join(MARK).exists());
    }
}
