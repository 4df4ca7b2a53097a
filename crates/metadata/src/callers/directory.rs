//! Callers: machines by address and by name.
//!
//! Tables are sharded, and a shard is replaced as a whole: a reader never waits for a writer, and a writer copies one
//! shard.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use forewarn_imds::Instance;
use forewarn_types::{MachineId, Name};

use super::last_poll::{LastPoll, Poll};
use super::load::CallerLoad;
use crate::published::DocumentSlot;

#[derive(Debug)]
pub struct Caller {
    pub machine: MachineId,
    pub name: Name,
    /// `tenant/name`; outside of the first cluster, `cluster/tenant/name`.
    pub full_name: Box<str>,
    /// Slot of its tenant's document.
    pub slot: Arc<DocumentSlot>,
    /// Instance metadata of the machine.
    pub instance: Instance,
    /// Its open connections and pending requests.
    pub(crate) load: CallerLoad,
    /// Its last poll, shared by all descriptions of the same machine.
    pub(crate) polled: Arc<LastPoll>,
}

impl Caller {
    /// A machine. Its last poll is carried over from its former description.
    #[must_use]
    pub fn new(
        machine: MachineId,
        full_name: Box<str>,
        slot: Arc<DocumentSlot>,
        instance: Instance,
        former: Option<&Self>,
    ) -> Self {
        let polled = former.map(|former| Arc::clone(&former.polled)).unwrap_or_default();
        let (name, load) = (instance.name.clone(), CallerLoad::default());
        Self { machine, name, full_name, slot, instance, load, polled }
    }

    /// The last poll of the machine since the server started.
    #[must_use]
    pub fn last_poll(&self) -> Option<Poll> {
        self.polled.get()
    }

    /// Returns true if both describe the same machine.
    fn is_same(&self, other: &Self) -> bool {
        (self.slot.cluster, self.machine) == (other.slot.cluster, other.machine)
    }
}

#[derive(Debug, Default)]
pub struct Directory {
    by_address: Shards<IpAddr, Arc<Caller>>,
    by_full_name: Shards<Box<str>, Arc<Caller>>,
    /// By name without tenant; several machines if the name is not unique.
    by_name: Shards<Box<str>, Vec<Arc<Caller>>>,
    generation: AtomicU64,
}

impl Directory {
    /// The machine with that address.
    #[must_use]
    pub fn at(&self, address: IpAddr) -> Option<Arc<Caller>> {
        self.by_address.get(&address.to_canonical())
    }

    /// The machine with that name: the full one, or a name that only one machine has.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<Arc<Caller>> {
        if name.contains('/') {
            return self.by_full_name.get(name);
        }
        match self.by_name.get(name)?.as_slice() {
            [only] => Some(Arc::clone(only)),
            _ => None,
        }
    }

    /// Number that changes with every change of the directory. A result of a lookup stays valid for as long as the
    /// number that was read before the lookup.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn bump_generation(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Lists a machine under its names and addresses.
    pub fn add(&self, caller: &Arc<Caller>, addresses: &[IpAddr]) {
        for address in addresses {
            self.by_address.change(address.to_canonical(), |_| Some(Arc::clone(caller)));
        }
        self.by_full_name.change(caller.full_name.clone(), |_| Some(Arc::clone(caller)));
        self.by_name.change(caller.name.as_str().into(), |others| {
            let mut all = others.cloned().unwrap_or_default();
            all.retain(|other| !other.is_same(caller));
            all.push(Arc::clone(caller));
            Some(all)
        });
        self.bump_generation();
    }

    /// Removes addresses that a machine no longer has.
    pub fn forget(&self, caller: &Caller, addresses: &[IpAddr]) {
        for address in addresses {
            let other = |known: &&Arc<Caller>| !known.is_same(caller);
            self.by_address.change(address.to_canonical(), |known| known.filter(other).cloned());
        }
        self.bump_generation();
    }

    /// Removes the former full name of a machine, unless it still has it.
    pub fn forget_name(&self, former: &Caller, now: &str) {
        if *former.full_name != *now {
            self.by_full_name.change(former.full_name.clone(), |_| None);
            self.bump_generation();
        }
    }

    pub fn remove(&self, caller: &Caller, addresses: &[IpAddr]) {
        self.forget(caller, addresses);
        self.by_full_name.change(caller.full_name.clone(), |_| None);
        self.by_name.change(caller.name.as_str().into(), |others| {
            let mut all = others.cloned().unwrap_or_default();
            all.retain(|other| !other.is_same(caller));
            (!all.is_empty()).then_some(all)
        });
        self.bump_generation();
    }
}

const SHARDS: usize = 64;

#[derive(Debug)]
struct Shards<K, V> {
    hasher: RandomState,
    shards: Box<[ArcSwap<HashMap<K, V>>]>,
}

impl<K, V> Default for Shards<K, V> {
    fn default() -> Self {
        let shards = (0..SHARDS).map(|_| ArcSwap::from_pointee(HashMap::new())).collect();
        Self { hasher: RandomState::new(), shards }
    }
}

impl<K: Hash + Eq + Clone, V: Clone> Shards<K, V> {
    fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.shard(key).load().get(key).cloned()
    }

    fn change(&self, key: K, to: impl Fn(Option<&V>) -> Option<V>) {
        let shard = self.shard(&key);
        let mut new = HashMap::clone(&shard.load());
        match to(new.get(&key)) {
            Some(value) => drop(new.insert(key, value)),
            None => drop(new.remove(&key)),
        }
        shard.store(Arc::new(new));
    }

    fn shard<Q: Hash + ?Sized>(&self, key: &Q) -> &ArcSwap<HashMap<K, V>> {
        let hash = usize::try_from(self.hasher.hash_one(key) % SHARDS as u64).unwrap_or(0);
        &self.shards[hash]
    }
}
