//! The pairs of a ring, in turns in which everyone sends to a different one and no channel carries much: what the torus is made of.
//!
//! Let k = 2 h. A position x and its opposite x + h make a *diameter*; there are h of them. For two diameters a and b the messages
//! from a to b and from b to a in one direction follow each other once around the ring and load each channel of that direction
//! with 1. A diameter alone either has its two positions send to each other, which loads each channel of one direction with 1, or
//! to themselves. A turn is then a matching of the diameters, and all turns together use each pair of diameters twice, once for
//! each direction, and each diameter alone twice: the rounds of a tournament of h players, played twice with the directions
//! exchanged. In every round half of the pairs take either direction, so that a channel carries about k / 8 messages, as many as
//! it must: all pairs load it with h (h + 1) / 2.
//!
//! A ring of odd k is one of k + 1 from which a position is taken out. Rings of 5 and 7 have turns of their own.

/// A ring's pairs in turns. In turn 0 everyone sends to itself if there is such a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ring {
    /// In turn t everyone sends t further. For radix 1 to 3 nothing is better.
    Shifts(u32),
    /// Pairs of diameters; the radix is even, 4 or more.
    Diameters(u32),
    /// The same with one position more, which nobody sends to; the radix is odd.
    OneLess(u32),
    /// Turns found by search, with no channel used twice.
    Found(&'static [&'static [u32]]),
}

/// Turns of a ring of 5, a line each: where 0, 1, ... send.
const FIVE: &[&[u32]] = &[&[2, 0, 1, 3, 4], &[3, 1, 2, 4, 0], &[1, 4, 3, 0, 2], &[4, 3, 0, 2, 1], &[0, 2, 4, 1, 3]];

/// Turns of a ring of 7.
const SEVEN: &[&[u32]] = &[
    &[3, 0, 1, 2, 4, 5, 6],
    &[4, 1, 0, 5, 3, 6, 2],
    &[2, 5, 3, 6, 1, 4, 0],
    &[5, 2, 4, 0, 6, 3, 1],
    &[1, 3, 6, 4, 0, 2, 5],
    &[6, 4, 2, 1, 5, 0, 3],
    &[0, 6, 5, 3, 2, 1, 4],
];

/// What a position does in a turn.
enum Step {
    /// So many further, in the direction of rising numbers if positive.
    By(i64),
    Stay,
}

impl Ring {
    /// The turns with the least load known for a ring of this radix.
    pub(super) fn of(radix: u32) -> Self {
        match radix {
            0..=3 => Self::Shifts(radix.max(1)),
            5 => Self::Found(FIVE),
            7 => Self::Found(SEVEN),
            even if even.is_multiple_of(2) => Self::Diameters(even),
            odd => Self::OneLess(odd),
        }
    }

    /// How many turns there are: the radix, or one more.
    pub(super) fn turns(self) -> u32 {
        match self {
            Self::Shifts(radix) | Self::Diameters(radix) => radix,
            Self::OneLess(radix) => radix + 1,
            Self::Found(turns) => turns.len() as u32,
        }
    }

    /// Does everyone send to itself in turn 0?
    pub(super) fn begins_at_rest(self) -> bool {
        matches!(self, Self::Shifts(_))
    }

    /// Where a position sends in a turn; to itself is no message.
    pub(super) fn destination(self, position: u32, turn: u32) -> Option<u32> {
        match self {
            Self::Shifts(radix) => Some((position + turn) % radix),
            Self::Found(turns) => Some(turns[turn as usize][position as usize]),
            Self::Diameters(radix) => Some(diameters(radix, position, turn, 1)),
            Self::OneLess(radix) => Some(diameters(radix + 1, position, turn, 1)).filter(|&to| to < radix),
        }
    }

    /// From where a position receives in a turn.
    pub(super) fn source(self, position: u32, turn: u32) -> Option<u32> {
        match self {
            Self::Shifts(radix) => Some((position + radix - turn) % radix),
            Self::Found(turns) => (0..).zip(turns[turn as usize]).find(|&(_, &to)| to == position).map(|(from, _)| from),
            Self::Diameters(radix) => Some(diameters(radix, position, turn, -1)),
            Self::OneLess(radix) => Some(diameters(radix + 1, position, turn, -1)).filter(|&from| from < radix),
        }
    }
}

/// Where a position of an even ring sends in a turn (`sense` 1), or from where it receives (-1).
fn diameters(radix: u32, position: u32, turn: u32, sense: i64) -> u32 {
    let step = match step(radix / 2, position % (radix / 2), turn, sense) {
        Step::By(step) => step * sense,
        Step::Stay => 0,
    };
    (i64::from(position) + step).rem_euclid(i64::from(radix)) as u32
}

/// What the positions of a diameter do in a turn, of h players: a round of the tournament, first or second time.
///
/// The players of a round r sit around a table of `seats`, an odd number: those whose numbers have the sum r, modulo the seats, meet.
/// The one who would meet itself is alone, or meets the last player if h is even, who has no seat. Two further turns
/// for even h have all diameters alone.
fn step(h: u32, own: u32, turn: u32, sense: i64) -> Step {
    let seats = if h.is_multiple_of(2) { h - 1 } else { h };
    let (round, second) = (turn / 2, turn % 2);
    if round == seats {
        return if own % 2 == second { Step::By(i64::from(h)) } else { Step::Stay };
    }
    // Half of the round, modulo the seats: who would meet itself.
    let alone = (u64::from(round) * (u64::from(seats) + 1) / 2 % u64::from(seats)) as u32;
    let partner = match own {
        last if last == seats => alone,
        own if own == alone && h.is_multiple_of(2) => seats,
        own if own == alone => return if second == 1 { Step::By(i64::from(h)) } else { Step::Stay },
        own => (round + seats - own) % seats,
    };
    // Pairs are counted by how far they sit from the one in the middle: every other takes the other direction.
    let far = if own == seats || partner == seats { 0 } else { (own + seats - alone) % seats };
    let pair = far.min(seats - far);
    let ahead = (i64::from(partner) - i64::from(own)) * sense;
    let rising = ahead.rem_euclid(i64::from(h));
    // With odd h the diameter alone rises in the second turn, in which the smaller half of the pairs does.
    if (pair + second) % 2 == h % 2 { Step::By(rising) } else { Step::By(rising - i64::from(h)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages on the busiest channel of a turn, by going the shortest path, half-way round in the direction of rising numbers.
    fn load(ring: Ring, radix: u32, turn: u32) -> u32 {
        let mut loads = vec![[0; 2]; radix as usize];
        for from in 0..radix {
            let Some(to) = ring.destination(from, turn) else { continue };
            let ahead = (to + radix - from) % radix;
            if ahead <= radix / 2 {
                (0..ahead).for_each(|step| loads[((from + step) % radix) as usize][0] += 1);
            } else {
                (0..radix - ahead).for_each(|step| loads[((to + step) % radix) as usize][1] += 1);
            }
        }
        loads.into_iter().flatten().max().unwrap_or(0)
    }

    #[test]
    fn every_pair_has_one_turn_and_nobody_sends_or_receives_twice_in_it() {
        for radix in 1..40 {
            let ring = Ring::of(radix);
            let mut served = vec![0; (radix * radix) as usize];
            for turn in 0..ring.turns() {
                for from in 0..radix {
                    let Some(to) = ring.destination(from, turn) else { continue };
                    assert_eq!(ring.source(to, turn), Some(from), "radix {radix}, turn {turn}");
                    served[(from * radix + to) as usize] += 1;
                    assert!(!ring.begins_at_rest() || turn > 0 || from == to);
                }
            }
            assert!(served.iter().all(|&times| times == 1), "radix {radix}: {served:?}");
        }
    }

    /// All pairs load a channel with h (h + 1) / 2, h = k / 2: no turns have a smaller sum of loads. It is reached unless h / 2 is an
    /// odd number of pairs, which has no half: then h - 1 more are needed.
    #[test]
    fn loads_of_even_rings_sum_to_what_all_pairs_need() {
        for radix in (4..60).step_by(2) {
            let (ring, h) = (Ring::of(radix), radix / 2);
            let loads: Vec<u32> = (0..ring.turns()).map(|turn| load(ring, radix, turn)).collect();
            let more = if h % 4 == 2 { h - 1 } else { 0 };
            assert_eq!(loads.iter().sum::<u32>(), h * (h + 1) / 2 + more, "radix {radix}: {loads:?}");
            if h % 4 == 3 {
                assert!(loads.iter().all(|&load| load == (h + 1) / 4), "radix {radix}: {loads:?}");
            }
        }
    }

    #[test]
    fn small_rings_are_free_of_contention() {
        for radix in 2..8 {
            let ring = Ring::of(radix);
            assert_eq!(ring.turns(), radix);
            assert!((0..radix).all(|turn| load(ring, radix, turn) <= 1), "radix {radix}");
        }
    }

    /// Without the position that is taken out, two opposite ones of the even ring have a shorter path in one direction each: a
    /// diameter alone loads both directions.
    #[test]
    fn odd_rings_are_little_busier_than_the_next_even_ring() {
        for radix in (9..40).step_by(2) {
            let (odd, even) = (Ring::of(radix), Ring::of(radix + 1));
            assert!((0..odd.turns()).all(|turn| load(odd, radix, turn) <= load(even, radix + 1, turn) + 1), "radix {radix}");
        }
    }
}
