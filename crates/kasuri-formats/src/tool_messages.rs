//! Messages of the InfiniBand tools within a dump, where `ibnetdiscover > dump 2>&1` puts them.
//!
//! Source: rdma-core 44: `libibmad/mad.h` (`ibwarn: [PID] FUNCTION: …`, `ibpanic:`, `ibdebug:`, `[PID] FUNCTION: …`), `libibnetdisc/internal.h`
//! (`FILE.c:LINE; …`), `infiniband-diags/ibdiag_common.c` (`PROGRAM: iberror: …`), `ibroute.c` and `dump_fts.c` (`SubnGet(LFT) failed …`).

/// Programs and shells that begin messages with their names.
const PROGRAMS: [&str; 12] =
    ["ibnetdiscover", "ibroute", "dump_lfts", "dump_lfts.sh", "dump_fts", "dump_mfts", "opensm", "perl", "sh", "bash", "sudo", "srun"];

/// Beginnings of other messages.
const BEGINNINGS: [&str; 10] =
    ["ibwarn:", "ibpanic:", "ibdebug:", "iberror:", "SubnGet(", "SubnGet failed", "Failed to ", "failed to ", "WARNING", "warning:"];

/// Messages that a reader has skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    count: usize,
    /// Line and text of the first.
    first: Option<(usize, String)>,
}

impl Messages {
    /// Counts a line that is a message; `false` of any other line.
    pub fn take(&mut self, line: usize, text: &str) -> bool {
        let found = is_message(text);
        if found {
            self.count += 1;
            self.first.get_or_insert_with(|| (line, text.chars().take(80).collect()));
        }
        found
    }

    /// A note about them, if there are any.
    pub fn note(&self, file: &str) -> Option<String> {
        let (line, text) = self.first.as_ref()?;
        let count = self.count;
        Some(format!("{file} holds {count} messages of the tools, first in line {line}: `{text}`; the dump may be incomplete"))
    }
}

/// Whether a line is a message of a tool.
pub fn is_message(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
        || text.contains(": iberror: ")
        || is_source_position(word)
        || word.strip_suffix(':').is_some_and(|program| PROGRAMS.contains(&program.rsplit('/').next().unwrap_or(program)))
        || is_verbose(text)
}

/// `src/query_smp.c:98;`
fn is_source_position(word: &str) -> bool {
    let word = word.trim_end_matches([';', ':', ',']);
    word.rsplit_once(':').is_some_and(|(file, line)| {
        let has_name = [".c", ".h", ".cc", ".cpp"].iter().any(|end| file.ends_with(end));
        has_name && !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// `[4711] main: …`; a port has an id in quotes after its number.
fn is_verbose(text: &str) -> bool {
    let Some((number, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once("] ")) else { return false };
    let is_function =
        |word: &str| word.strip_suffix(':').is_some_and(|name| name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric()));
    number.bytes().all(|byte| byte.is_ascii_digit()) && rest.split_whitespace().next().is_some_and(is_function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_known_from_what_dumps_hold() {
        for text in [
            "ibwarn: [4711] mad_rpc: _do_madrpc failed; dport (DR path slid 0; dlid 0; 0,1)",
            "ibpanic: [1] main: discover failed: No such file or directory",
            "/usr/sbin/ibroute: iberror: failed: dump tables: linear forwarding table get failed",
            "ibnetdiscover: iberror: [pid 3] main: failed: discover failed",
            "src/query_smp.c:98; send failed; -5",
            "../libibnetdisc/ibnetdisc.c:212; Query remote node (DR path slid 0; dlid 0; 0,1,3) failed, skipping port",
            "/build/rdma-core/libibnetdisc/query_smp.c:197: bad MAD",
            "[4711] check_switch: checking node type",
            "SubnGet(LFT) failed on switch 'leaf 1'0x0002c90000001000 DR path slid 0; MAD status 0x110 AM 0x0",
            "sudo: unable to resolve host login1",
        ] {
            assert!(is_message(text), "{text}");
        }
        for text in [
            "[1]\t\"H-00aa000000000100\"[1](aa000000000100) \t\t# \"node0 mlx5_0\" lid 10 4xHDR",
            "[1] \"s: x\"[5] # lid 0 lmc 0 \"s\" lid 0 4xSDR",
            "Switch\t41 \"S-00aa000000000001\"\t\t# \"leaf.c:1\" enhanced port 0 lid 1 lmc 0",
            "0x0001 005 : (Channel Adapter portguid 0x0002c90300001001: 'sh: node1')",
            "vendid=0x2c9",
            "CA   182  1 0x001175000077d284 4x QDR",
        ] {
            assert!(!is_message(text), "{text}");
        }
    }
}
