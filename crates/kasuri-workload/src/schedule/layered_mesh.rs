//! Contention-free phases on layers of full meshes: what MLFM and full mesh share.

use super::contract::Schedule;

/// K layers of m positions with p terminals each, p <= m - 1 (or m = 1). Rank = (layer m + position) p + index.
///
/// Three parts, in which rank (l, a, i) sends
/// 1. to its own leaf: (l, a, i + t), t = 1..p-1;
/// 2. to other positions: (l + s, a + 1 + ((i + d) mod (m - 1)), i + t), s = 0..K-1, d = 0..m-2, t = 0..p-1;
/// 3. to its own position in other layers: (l + s, a, i + t), s = 1..K-1, t = 0..p-1;
///
/// sums modulo K, m and p: K m p - 1 phases, the fewest that there can be. In part 2 the p ranks of a leaf send to different
/// positions and so by different spines; a leaf receives its messages of a phase from one layer, from different positions, by
/// different spines. In part 3 they are spread over different spines by the place of their destination.
#[derive(Debug)]
pub(super) struct LayeredMesh {
    pub(super) layers: u32,
    pub(super) positions: u32,
    pub(super) terminals: u32,
}

/// What happens in a phase.
enum Part {
    /// 1 and 3: layers and index are shifted.
    SamePosition { layers: u32, index: u32 },
    /// 2.
    OtherPosition { layers: u32, offset: u32, index: u32 },
}

impl LayeredMesh {
    fn part(&self, phase: u32) -> Part {
        let Self { layers, positions, terminals } = *self;
        let others = layers * (positions - 1) * terminals;
        if phase < terminals - 1 {
            return Part::SamePosition { layers: 0, index: phase + 1 };
        }
        let phase = phase - (terminals - 1);
        if phase < others {
            let (index, rest) = (phase % terminals, phase / terminals);
            return Part::OtherPosition { layers: rest / (positions - 1), offset: rest % (positions - 1), index };
        }
        let phase = phase - others;
        Part::SamePosition { layers: 1 + phase / terminals, index: phase % terminals }
    }

    /// How many positions further an index sends in part 2.
    fn step(&self, index: u32, offset: u32) -> u32 {
        1 + (index + offset) % (self.positions - 1)
    }

    fn split(&self, rank: u32) -> (u32, u32, u32) {
        let leaf = rank / self.terminals;
        (leaf / self.positions, leaf % self.positions, rank % self.terminals)
    }

    fn rank(&self, layer: u32, position: u32, index: u32) -> u32 {
        (layer % self.layers * self.positions + position % self.positions) * self.terminals + index % self.terminals
    }
}

impl Schedule for LayeredMesh {
    fn phases(&self) -> u32 {
        self.layers * self.positions * self.terminals - 1
    }

    fn destination(&self, rank: u32, phase: u32) -> Option<u32> {
        let (layer, position, i) = self.split(rank);
        Some(match self.part(phase) {
            Part::SamePosition { layers, index } => self.rank(layer + layers, position, i + index),
            Part::OtherPosition { layers, offset, index } => self.rank(layer + layers, position + self.step(i, offset), i + index),
        })
    }

    fn source(&self, rank: u32, phase: u32) -> Option<u32> {
        let (layer, position, i) = self.split(rank);
        Some(match self.part(phase) {
            Part::SamePosition { layers, index } => self.rank(layer + self.layers - layers, position, i + self.terminals - index),
            Part::OtherPosition { layers, offset, index } => {
                let i = (i + self.terminals - index) % self.terminals;
                self.rank(layer + self.layers - layers, position + self.positions - self.step(i, offset), i)
            }
        })
    }
}
