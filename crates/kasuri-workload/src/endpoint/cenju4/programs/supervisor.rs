//! The operating systems of the ranks' nodes: each sends parcels in supervisor mode to the next, with physical addresses and node numbers.

use super::super::memory::PAGE;
use super::super::node::Node;
use super::super::script::{Op, Program, Put, Script};
use super::super::task::{Destination, OPERATING_SYSTEM, Ring};
use super::Job;

/// Adds them to a machine. Their memory has the same physical addresses on each node.
pub(super) fn add(job: &Job<'_>, nodes: &mut [Node], programs: &mut [Vec<Program>]) {
    let (parcels, bytes) = (u64::from(job.workload.system_parcels), job.workload.message_bytes);
    let place = bytes.next_multiple_of(PAGE);
    let ranks = job.ranks as usize;
    let destinations: Vec<Destination> = (0..job.ranks as u16).map(|node| Destination { node, cid: OPERATING_SYSTEM }).collect();
    let log = Ring { base: 0, size: 16 * PAGE, written: 0 };
    for (rank, (node, programs)) in nodes.iter_mut().zip(programs).take(ranks).enumerate() {
        let (source, target) = (node.reserve(place), node.reserve(parcels * place));
        let base = node.reserve(log.size);
        let task = node.create_task(OPERATING_SYSTEM);
        (task.supervisor, task.nodes, task.buffers.log) = (true, destinations.clone(), Ring { base, ..log });
        let seed = |rank: usize| u64::from(OPERATING_SYSTEM) << 56 | rank as u64;
        let mut script = Script::of_operating_system(job.constants);
        script.op(Op::Fill { address: source, bytes, seed: seed(rank) });
        for parcel in 0..parcels {
            let destination = target + parcel * place;
            script.put(Put { to: ((rank + 1) % ranks) as u16, multicast: false, source, destination, bytes, reuse_line: true });
        }
        script.receive(parcels);
        for parcel in 0..parcels {
            script.op(Op::Check { address: target + parcel * place, bytes, seed: seed((rank + ranks - 1) % ranks) });
        }
        programs.push(script.finish(OPERATING_SYSTEM));
    }
}
