//! The cost of a copy of a cluster, and of an order of two commands that is decided on a copy.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use forewarn_lifecycle::{Cluster, Command, MachineId, Now, Refusal};

use crate::memory;

/// Copies over which the costs are averaged.
const COPIES: u32 = 200;
/// Far apart, so that the two commands of an order change different pages.
const STRIDE: u32 = 611_953;

/// The cost of one copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// The time to make it and to drop it.
    pub(crate) time: Duration,
    /// The resident memory that it adds while it is kept.
    pub(crate) bytes: u64,
}

/// The costs of both kinds of copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Costs {
    pub(crate) copy: Cost,
    pub(crate) order: Cost,
}

/// Measures copies of a cluster with that many machines.
pub(crate) fn measure(cluster: &Cluster, now: Now, machines: u32) -> Result<Costs, Box<dyn Error>> {
    let orders: Vec<_> = (0..COPIES).map(|number| order(cluster, now, machines, number)).collect();
    let copy = cost(&orders, |_| Ok(cluster.clone()))?;
    let order = cost(&orders, |order| obeyed(cluster, now, order))?;
    Ok(Costs { copy, order })
}

/// Restarts of two machines that can be restarted.
fn order(cluster: &Cluster, now: Now, machines: u32, number: u32) -> Vec<Command> {
    let restart = |place: u32| {
        let first = MachineId(place.wrapping_mul(STRIDE) % machines);
        let mut restarts = cluster.machines_from(first).map(|(id, _)| Command::Restart(id));
        restarts.find(|command| cluster.decide(now, command).is_ok())
    };
    [2 * number, 2 * number + 1].into_iter().filter_map(restart).collect()
}

fn cost(
    orders: &[Vec<Command>],
    make: impl Fn(&[Command]) -> Result<Cluster, Refusal>,
) -> Result<Cost, Box<dyn Error>> {
    let before = memory::resident_bytes()?;
    let kept = orders.iter().map(|order| make(order)).collect::<Result<Vec<_>, _>>()?;
    let bytes = memory::resident_bytes()?.saturating_sub(before) / u64::from(COPIES);
    drop(kept);
    let begin = Instant::now();
    for order in orders {
        drop(black_box(make(order)?));
    }
    Ok(Cost { time: begin.elapsed() / COPIES, bytes })
}

/// A copy to which an order was given.
fn obeyed(cluster: &Cluster, now: Now, order: &[Command]) -> Result<Cluster, Refusal> {
    let mut copy = cluster.clone();
    for command in order {
        for change in copy.decide(now, command)? {
            copy.evolve(now, &change);
        }
    }
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_bench::rules_fleet;

    #[test]
    fn an_order_is_given_to_the_copy_alone() {
        let (cluster, now) = (rules_fleet::build(10).unwrap(), Now::at_millis(0));
        let before = cluster.clone();
        let order = order(&cluster, now, 1_000, 3);
        let copy = obeyed(&cluster, now, &order).unwrap();
        assert_eq!((copy.maintenances().count(), cluster.maintenances().count()), (2, 0));
        assert_eq!(cluster, before);
        assert!(measure(&cluster, now, 1_000).unwrap().order.time > Duration::ZERO);
    }
}
