//! Flows as their senders know them, and the triggers that they tell.

use super::{FlowTimes, Options};
use crate::packets::NONE;
use crate::receiver::Receiver;
use kasuri_workload::ethernet::matrix::{Connection, Matrix, Trigger, TriggerKind};

/// A flow.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) source: u32,
    pub(crate) destination: u32,
    /// Its packets, and how many of them are sent.
    pub(crate) packets: u32,
    pub(crate) sent: u32,
    /// Bytes on the wire of the last.
    pub(crate) last_bytes: u16,
    /// The flow behind it in the line of its interface.
    pub(crate) behind: u32,
    /// The trigger that it tells, or [`NONE`].
    pub(crate) tells: u32,
    pub(crate) times: FlowTimes,
    pub(crate) receiver: Receiver,
}

impl Flow {
    pub(crate) fn new(connection: &Connection, options: &Options) -> Self {
        let (packets, last_bytes) = options.packets(connection.bytes);
        Self {
            source: connection.source,
            destination: connection.destination,
            packets: packets as u32,
            sent: 0,
            last_bytes: last_bytes as u16,
            behind: NONE,
            tells: connection.tells.unwrap_or(NONE),
            times: FlowTimes::default(),
            receiver: Receiver::default(),
        }
    }
}

/// How often each trigger has been told.
#[derive(Debug)]
pub(crate) struct Triggers<'a> {
    triggers: &'a [Trigger],
    told: Vec<u32>,
}

impl<'a> Triggers<'a> {
    pub(crate) fn new(matrix: &'a Matrix) -> Self {
        Self { triggers: &matrix.triggers, told: vec![0; matrix.triggers.len()] }
    }

    /// The flows that start now that a trigger is told once more, in the order of the file.
    pub(crate) fn tell(&mut self, trigger: u32) -> &'a [u32] {
        let Trigger { kind, flows, .. } = &self.triggers[trigger as usize];
        let told = &mut self.told[trigger as usize];
        *told += 1;
        let starts = match kind {
            TriggerKind::Oneshot => *told == 1,
            TriggerKind::Barrier(count) => *told == *count,
            TriggerKind::Multishot => {
                let next = *told as usize - 1;
                return flows.get(next..=next).unwrap_or(&[]);
            }
        };
        if starts { flows } else { &[] }
    }
}
