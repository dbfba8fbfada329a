//! The rings of a torus: channels that lead on in one direction of a dimension until they come back to where they began.

use super::Network;
use crate::id::Port;

/// The rings of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rings {
    /// Ports below this one belong to rings: 2d leads up in dimension d, 2d + 1 leads down.
    ports: Port,
}

impl Rings {
    /// Those of a torus; `None` of a network that is none.
    pub fn of(network: &Network) -> Option<Self> {
        let labels = network.labels();
        let dimensions = labels.attribute("dimensions")?;
        (labels.attribute("wrap") == Some(&[1])).then(|| Self { ports: 2 * dimensions.len() as Port })
    }

    /// The output by which a ring goes on whose channel ends at this input.
    #[inline]
    pub fn onward(&self, input: Port) -> Option<Port> {
        (input < self.ports).then_some(input ^ 1)
    }

    /// Does a channel of a ring begin at this output?
    #[inline]
    pub fn has_output(&self, output: Port) -> bool {
        output < self.ports
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::RouterId;
    use crate::network::Endpoint;
    use crate::topology::torus::Torus;
    use crate::topology::{BuildContext, ChannelParameters, NoFiles, Topology};

    /// From each output of a ring the channels lead round in as many hops as the dimension is long.
    #[test]
    fn rings_come_back_after_the_length_of_their_dimension() {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let lengths = [4usize, 2, 5];
        let torus: Torus = toml::from_str("dimensions = [4, 2, 5]").unwrap();
        let network = torus.build(&context).unwrap();
        let rings = Rings::of(&network).expect("a torus");
        for (router, output) in (0..network.router_count()).flat_map(|router| (0..6).map(move |output| (RouterId(router), output as Port)))
        {
            let (mut at, mut hops) = ((router, output), 0);
            loop {
                let channel = network.output_channel(at.0, at.1).expect("a channel of a ring");
                let Endpoint::Router(next, input) = network.destination(channel) else { panic!("a ring has no terminal") };
                at = (next, rings.onward(input).expect("it goes on"));
                hops += 1;
                if at == (router, output) {
                    break;
                }
            }
            assert_eq!(hops, lengths[usize::from(output) / 2], "{router}, output {output}");
        }
        assert!(!rings.has_output(6) && rings.onward(6).is_none());
    }
}
