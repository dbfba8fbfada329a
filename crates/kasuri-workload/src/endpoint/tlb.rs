//! A translation look-aside buffer: fully associative, the least recently used entry is replaced.

/// Which pages an interface can translate without a look at the tables in memory. It holds keys only: what a page translates to is
/// always read from the tables, so a table that changes is never contradicted.
#[derive(Clone, Debug)]
pub struct Tlb<K> {
    /// The most recently used last.
    entries: Vec<K>,
    capacity: usize,
    /// Translations that found their entry.
    pub hits: u64,
    /// Translations that did not.
    pub misses: u64,
}

impl<K: PartialEq> Tlb<K> {
    /// An empty one with room for so many entries.
    pub fn new(capacity: usize) -> Self {
        Self { entries: Vec::with_capacity(capacity), capacity, hits: 0, misses: 0 }
    }

    /// Looks an entry up and loads it if it is missing. Was it there?
    pub fn access(&mut self, key: K) -> bool {
        let found = self.entries.iter().position(|entry| *entry == key);
        match found {
            Some(place) => {
                self.entries.remove(place);
                self.hits += 1;
            }
            None => {
                if self.entries.len() == self.capacity && self.capacity > 0 {
                    self.entries.remove(0);
                }
                self.misses += 1;
            }
        }
        if self.capacity > 0 {
            self.entries.push(key);
        }
        found.is_some()
    }

    /// Forgets an entry. Was it there?
    pub fn invalidate(&mut self, key: &K) -> bool {
        let found = self.entries.iter().position(|entry| entry == key);
        if let Some(place) = found {
            self.entries.remove(place);
        }
        found.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_not_used_for_longest_goes_first() {
        let mut tlb = Tlb::new(2);
        assert_eq!([1, 2, 1, 3, 1, 2].map(|key| tlb.access(key)), [false, false, true, false, true, false]);
        assert_eq!((tlb.hits, tlb.misses), (2, 4));
        let mut none = Tlb::new(0);
        assert!(!none.access(1) && !none.access(1));
    }
}
