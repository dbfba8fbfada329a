//! The networks of runs in the store: each distinct one once, named by a hash of its content.

use crate::checksums::network_id;
use crate::store::{Store, StoreError};
use kasuri_formats::network_json;
use kasuri_network::network::Network;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Networks with more channels than this are not kept: they are too large to draw, and the text of one takes megabytes.
pub const MAX_KEPT_CHANNELS: u32 = 100_000;

/// Names the networks of an experiment's runs and keeps them in its store.
#[derive(Debug, Default)]
pub(crate) struct Networks {
    /// The networks so far. The plan holds them, so they are found by address.
    known: Mutex<Vec<(Weak<Network>, String)>>,
}

impl Networks {
    /// The name of a run's network, the column `network_id`; `None` if it is too large. With a store the network is in it afterwards.
    /// `named`: the name in a finished run. If the store has that network, it need not be written out again.
    ///
    /// # Errors
    /// The disk is full or the operating system refuses.
    pub(crate) fn keep(&self, network: &Arc<Network>, named: Option<&str>, store: Option<&Store>) -> Result<Option<String>, StoreError> {
        if network.channel_count() > MAX_KEPT_CHANNELS {
            return Ok(None);
        }
        // Held while a network is written: equal runs would write it together.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(network, _)| network.strong_count() > 0);
        if let Some((_, id)) = known.iter().find(|(other, _)| std::ptr::eq(other.as_ptr(), Arc::as_ptr(network))) {
            return Ok(Some(id.clone()));
        }
        if let Some(id) = named.filter(|id| store.is_some_and(|store| store.has_network(id))) {
            known.push((Arc::downgrade(network), id.to_owned()));
            return Ok(Some(id.to_owned()));
        }
        let text = network_json::write(network);
        let id = network_id(text.as_bytes());
        if let Some(store) = store {
            store.keep_network(&id, &text)?;
        }
        known.push((Arc::downgrade(network), id.clone()));
        Ok(Some(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::network;
    use crate::store::Access;
    use std::fs;

    #[test]
    fn equal_networks_are_one_file_which_holds_the_network_and_is_mended() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Access::Whole).unwrap();
        let (one, equal) = (Arc::new(network()), Arc::new(network()));
        let networks = Networks::default();
        let id = networks.keep(&one, None, Some(&store)).unwrap().unwrap();
        assert_eq!(networks.keep(&equal, None, Some(&store)).unwrap().unwrap(), id);
        assert_eq!(Networks::default().keep(&one, None, None).unwrap().unwrap(), id);
        let path = folder.path().join("networks").join(format!("{id}.json"));
        let read = || network_json::parse("n", &fs::read(&path).unwrap()).unwrap();
        assert_eq!(read(), *one);
        let written = || fs::metadata(&path).unwrap().modified().unwrap();
        let first = written();
        assert_eq!(Networks::default().keep(&one, Some(&id), Some(&store)).unwrap().unwrap(), id);
        assert_eq!(written(), first, "what is there is not written again");
        fs::write(&path, "damaged").unwrap();
        assert_eq!(Networks::default().keep(&one, Some(&id), Some(&store)).unwrap().unwrap(), id);
        assert_eq!(read(), *one);
        assert_eq!(fs::read_dir(folder.path().join("networks")).unwrap().count(), 1);
    }
}
