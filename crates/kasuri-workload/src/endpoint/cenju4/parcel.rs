//! Parcels: what a task asks the interface for, in a header of 32 bytes; and the packets that they become.

use super::fault::Fault;
use super::memory::{LINE, PAGE};

/// Bytes of the longest parcel.
pub const MAX_PARCEL: u32 = 512 * 1024;
/// Bytes of data of the longest packet: two lines.
pub const MAX_PACKET: u32 = 256;

/// What a parcel does at its destination: the rows of the interface's table of protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Writes memory from `src` to `dst` there.
    RemoteDma,
    /// Writes memory from `src` to where an address register (0 to 2) of the destination points.
    AddressRegister(u8),
    /// Writes memory from `src` to the end of message buffer 0 or 1 of the destination.
    Message(u8),
    /// Adds `im` to the double word at `dst`.
    AtomicAdd,
    /// Has the destination send its memory from `src` to `dst` here.
    RemoteRead,
    /// Writes `im` into the double word at `dst1` there; the old value is written into `dst2` here.
    Swap,
    /// Writes `im2` into the double word at `dst1` there if it is `im1`; the old value and whether it was equal come back.
    CompareSwap,
}

impl Protocol {
    /// All of them, in the order of their codes in the header.
    pub const ALL: [Self; 10] = [
        Self::RemoteDma,
        Self::AddressRegister(0),
        Self::AddressRegister(1),
        Self::AddressRegister(2),
        Self::Message(0),
        Self::Message(1),
        Self::AtomicAdd,
        Self::RemoteRead,
        Self::Swap,
        Self::CompareSwap,
    ];

    /// Does the destination send something back?
    pub fn is_answered(self) -> bool {
        matches!(self, Self::RemoteRead | Self::Swap | Self::CompareSwap)
    }

    /// Does the sender read memory for it (unless the data is in the header)?
    pub fn has_data(self) -> bool {
        matches!(self, Self::RemoteDma | Self::AddressRegister(_) | Self::Message(_))
    }
}

/// How the network treats the packets of a parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// To one node.
    Unicast,
    /// To a set of nodes in a group of 64.
    Multicast,
    /// Waits in the routers until all participants have sent theirs.
    Synchronisation,
}

/// A parcel's header as a task writes it: four double words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// How the network treats it.
    pub kind: Kind,
    /// What it does there.
    pub protocol: Protocol,
    /// Bytes of data.
    pub length: u32,
    /// The logical destination: an offset into the node table, the multicast table or the synchronisation table. 12 bits.
    pub destination: u16,
    /// The data (up to 8 bytes) is the second double word.
    pub inline: bool,
    /// Write [`SENT`] to the address in the fourth double word when the last packet has left.
    pub notify: bool,
    /// The destination logs the last packet.
    pub log: bool,
    /// The destination's processor is interrupted by the last packet.
    pub interrupt: bool,
    /// Where a packet begins in the line in which the one before it ended, do not ask the cache for that line again.
    pub reuse_line: bool,
    /// In supervisor mode: addresses and node numbers are physical. Only the operating system may.
    pub supervisor: bool,
    /// Where the answer to a remote read or a compare-and-swap is announced. 6 bits.
    pub remote_read_id: u8,
    /// The second to fourth double word.
    pub words: [u64; 3],
}

/// What the Sender writes when a parcel has been sent.
pub const SENT: u64 = 0x5ea1_ed00_0000_0001;

impl Header {
    /// A parcel to one node, without data in the header and without notifications.
    pub fn new(protocol: Protocol, destination: u16, length: u32, words: [u64; 3]) -> Self {
        Self {
            kind: Kind::Unicast,
            protocol,
            length,
            destination,
            inline: false,
            notify: false,
            log: false,
            interrupt: false,
            reuse_line: true,
            supervisor: false,
            remote_read_id: 0,
            words,
        }
    }

    /// The four double words.
    pub fn encode(&self) -> [u64; 4] {
        let protocol = Protocol::ALL.iter().position(|known| *known == self.protocol).unwrap_or_default() as u64;
        let flags = [self.inline, self.notify, self.log, self.interrupt, self.reuse_line];
        let flags = flags.iter().enumerate().map(|(place, &flag)| u64::from(flag) << place).sum::<u64>();
        let first = self.kind as u64
            | protocol << 2
            | u64::from(self.length) << 6
            | u64::from(self.destination & 0xfff) << 26
            | flags << 38
            | u64::from(self.remote_read_id & 0x3f) << 43
            | u64::from(self.supervisor) << 49;
        [first, self.words[0], self.words[1], self.words[2]]
    }

    /// Reads four double words.
    ///
    /// # Errors
    /// A kind or protocol that does not exist.
    pub fn decode(words: [u64; 4]) -> Result<Self, Fault> {
        let bits = |from: u32, count: u32| words[0] >> from & ((1 << count) - 1);
        let kind = match bits(0, 2) {
            0 => Kind::Unicast,
            1 => Kind::Multicast,
            2 => Kind::Synchronisation,
            _ => return Err(Fault::BadHeader),
        };
        let protocol = *Protocol::ALL.get(bits(2, 4) as usize).ok_or(Fault::BadHeader)?;
        let flag = |place: u32| bits(38 + place, 1) == 1;
        Ok(Self {
            kind,
            protocol,
            length: bits(6, 20) as u32,
            destination: bits(26, 12) as u16,
            inline: flag(0),
            notify: flag(1),
            log: flag(2),
            interrupt: flag(3),
            reuse_line: flag(4),
            supervisor: bits(49, 1) == 1,
            remote_read_id: bits(43, 6) as u8,
            words: [words[1], words[2], words[3]],
        })
    }
}

/// Bytes of the next packet of a parcel of which `left` bytes are to be sent, from `source` to `destination`.
///
/// It ends on a line of the destination unless it is the last, and crosses no page on either side. Where the source is at an odd word
/// (of 4 bytes), double words are put together of two halves: then the last of a page takes its second half from the double word that
/// follows in physical memory, and the packet may go one word beyond the page.
pub fn packet_length(source: u64, destination: u64, left: u32) -> u32 {
    let to_line = u64::from(MAX_PACKET) - destination % LINE;
    let to_page = PAGE - destination % PAGE;
    let odd = source % 8 == 4;
    let of_source = PAGE - source % PAGE + if odd { 4 } else { 0 };
    u64::from(left).min(to_line).min(to_page).min(of_source) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packets_cover_a_parcel_end_on_lines_and_cross_no_page(
            source in 0u64..1 << 20, destination in 0u64..1 << 20, length in 1u32..=MAX_PARCEL
        ) {
            let (source, destination) = (source * 4, destination * 8);
            let mut done = 0;
            while done < length {
                let (from, to) = (source + u64::from(done), destination + u64::from(done));
                let bytes = packet_length(from, to, length - done);
                prop_assert!((1..=MAX_PACKET).contains(&bytes));
                let (source_end, end) = (from + u64::from(bytes), to + u64::from(bytes));
                prop_assert_eq!(to / PAGE, (end - 1) / PAGE);
                // An odd word at the end of a page takes its other half along.
                let overhang = if from % 8 == 4 { 4 } else { 0 };
                prop_assert!(source_end <= (from / PAGE + 1) * PAGE + overhang);
                done += bytes;
                let at_page = source_end == (from / PAGE + 1) * PAGE + overhang;
                prop_assert!(done == length || end % LINE == 0 || at_page, "{from} {to} {bytes}");
                prop_assert!(done == length || end % 8 == 0);
            }
            prop_assert_eq!(done, length);
        }

        #[test]
        fn headers_survive_encoding(first: u64, second: u64, third: u64, fourth: u64) {
            if let Ok(header) = Header::decode([first, second, third, fourth]) {
                prop_assert_eq!(Header::decode(header.encode()).unwrap(), header);
            }
        }
    }

    #[test]
    fn a_long_aligned_parcel_goes_in_packets_of_two_lines() {
        assert_eq!(packet_length(0, 0, MAX_PARCEL), 256);
        assert_eq!(packet_length(0, 64, MAX_PARCEL), 192);
        assert_eq!(packet_length(4096 - 16, 0, 1000), 16);
        assert_eq!(packet_length(4096 - 12, 0, 1000), 16);
        assert_eq!(packet_length(0, 4096 - 128, 1000), 128);
    }
}
