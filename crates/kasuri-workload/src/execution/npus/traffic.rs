//! What NPUs will send, before anything happens: for counts and bounds.

use super::super::trace::{Collective, Kind, Message};
use super::algorithm::Algorithm;
use super::issue::Course;
use super::{Npus, Outside};

/// A message that will be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Who sends.
    pub source: u32,
    /// Who receives.
    pub destination: u32,
    /// Its size.
    pub bytes: u64,
}

/// How much is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Messages.
    pub messages: u64,
    /// Bytes of the longest.
    pub longest: u64,
}

/// What has been told of messages.
struct Teller<'e> {
    volume: Volume,
    each: Option<&'e mut dyn FnMut(Planned)>,
}

impl Teller<'_> {
    fn tell(&mut self, planned: Planned) {
        self.volume.messages += 1;
        self.volume.longest = self.volume.longest.max(planned.bytes);
        self.each.iter_mut().for_each(|each| each(planned));
    }

    fn tell_phase(&mut self, source: u32, algorithm: &Algorithm) {
        self.volume.messages += algorithm.messages();
        self.volume.longest = self.volume.longest.max(algorithm.longest());
        if let Some(each) = &mut self.each {
            algorithm.clone().each_message(&mut |destination, bytes| each(Planned { source, destination, bytes }));
        }
    }
}

impl<O: Outside> Npus<'_, O> {
    /// Goes through the programs of all NPUs, nodes in ascending order of their ids, and tells of each message, if asked to. The NPUs are of
    /// no use afterwards: the queues have had their turns.
    ///
    /// # Errors
    /// A node that cannot be run, with its NPU and what is wrong with it.
    pub fn plan(mut self, each: Option<&mut dyn FnMut(Planned)>) -> Result<Volume, String> {
        let mut teller = Teller { volume: Volume::default(), each };
        if self.job.system.replay_only {
            return Ok(teller.volume);
        }
        for npu in 0..self.npus.len() as u32 {
            let trace = &self.job.traces[npu as usize];
            for (node, item) in trace.nodes.iter().enumerate() {
                self.plan_node(npu, node as u32, &mut teller)
                    .map_err(|problem| format!("NPU {npu}: node {} (`{}`): {problem}", item.id, item.name))?;
            }
        }
        Ok(teller.volume)
    }

    fn plan_node(&mut self, npu: u32, node: u32, teller: &mut Teller<'_>) -> Result<(), String> {
        let item = &self.job.traces[npu as usize].nodes[node as usize];
        match &item.kind {
            Kind::Metadata { groups } => self.define_groups(npu, groups),
            Kind::Send(message) => teller.tell(planned_send(npu, message)?),
            Kind::Collective(collective) => self.plan_collective(npu, node, collective, teller)?,
            _ => {}
        }
        Ok(())
    }

    fn plan_collective(&mut self, npu: u32, node: u32, collective: &Collective, teller: &mut Teller<'_>) -> Result<(), String> {
        match self.course(npu, node, collective)? {
            Course::Silent | Course::Alone => {}
            Course::Trace { trace, group, .. } => {
                let real = |rank: u32| group.as_ref().map_or(Some(rank), |group| group.members.get(rank as usize).copied());
                for item in &trace.nodes {
                    if let Kind::Send(Message { destination: Some(to), bytes: Some(bytes), .. }) = item.kind
                        && let Some(destination) = real(to)
                    {
                        teller.tell(Planned { source: npu, destination, bytes });
                    }
                }
            }
            Course::Phases { scope, chunks, chunk, .. } => {
                for _ in 0..chunks {
                    for phase in self.phases(npu, &scope, chunk)? {
                        teller.tell_phase(npu, &phase.algorithm);
                    }
                }
            }
        }
        Ok(())
    }
}

fn planned_send(npu: u32, message: &Message) -> Result<Planned, String> {
    let destination = message.destination.ok_or("has no comm_dst")?;
    Ok(Planned { source: npu, destination, bytes: message.bytes.ok_or("has no comm_size")? })
}
