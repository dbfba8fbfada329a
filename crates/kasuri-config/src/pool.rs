//! What several points of an experiment have in common, made once for all threads that ask for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many values are kept although nobody uses them: a sweep over sizes need not keep every network.
const CAPACITY: usize = 4;

/// Values by what they are made of: the last few, and those that somebody still uses. Of several threads that ask for the same value one
/// makes it and the others wait; different ones are made at the same time.
pub(super) struct Pool<K, V: ?Sized>(Mutex<Vec<Entry<K, V>>>);

struct Entry<K, V: ?Sized> {
    key: K,
    place: Place<V>,
}

/// Where a value is or will be; locked while it is made.
type Place<V> = Arc<Mutex<Option<Arc<V>>>>;

impl<K, V: ?Sized> Default for Pool<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// A thread that has panicked while it made a value has left none.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K, V: ?Sized> Pool<K, V> {
    /// The value whose key is the one asked for; else it is made.
    ///
    /// # Errors
    /// As `make`.
    pub(super) fn get<E>(
        &self,
        is_same: impl Fn(&K) -> bool,
        key: impl FnOnce() -> K,
        make: impl FnOnce() -> Result<Arc<V>, E>,
    ) -> Result<Arc<V>, E> {
        let place = self.place(is_same, key);
        let mut value = lock(&place);
        if let Some(value) = &*value {
            return Ok(Arc::clone(value));
        }
        let made = make()?;
        *value = Some(Arc::clone(&made));
        Ok(made)
    }

    fn place(&self, is_same: impl Fn(&K) -> bool, key: impl FnOnce() -> K) -> Place<V> {
        let mut entries = lock(&self.0);
        if let Some(entry) = entries.iter().find(|entry| is_same(&entry.key)) {
            return Arc::clone(&entry.place);
        }
        // Before the new one is made: the old ones' memory is free for it.
        let mut rank = 0;
        entries.retain(|entry| {
            rank += 1;
            rank < CAPACITY || entry.is_used()
        });
        let place = Place::<V>::default();
        entries.insert(0, Entry { key: key(), place: Arc::clone(&place) });
        place
    }
}

impl<K, V: ?Sized> Entry<K, V> {
    /// Does somebody else hold the value, make it or wait for it?
    fn is_used(&self) -> bool {
        Arc::strong_count(&self.place) > 1 || lock(&self.place).as_ref().is_some_and(|value| Arc::strong_count(value) > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn get(pool: &Pool<u32, String>, key: u32, made: &AtomicU32) -> Arc<String> {
        let make = || {
            made.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(Arc::new(key.to_string()))
        };
        pool.get(|known| *known == key, || key, make).unwrap()
    }

    #[test]
    fn a_value_is_made_once_while_it_is_used_and_for_a_while_after() {
        let (pool, made) = (Pool::default(), AtomicU32::new(0));
        let used = get(&pool, 0, &made);
        for key in 0..100 {
            assert_eq!(*get(&pool, key, &made), key.to_string());
            assert!(Arc::ptr_eq(&get(&pool, 0, &made), &used));
        }
        assert_eq!(made.load(Ordering::Relaxed), 100);
        drop(used);
        (1..100).for_each(|key| drop(get(&pool, key, &made)));
        assert_eq!(lock(&pool.0).len(), CAPACITY);
    }

    #[test]
    fn threads_that_ask_for_the_same_value_get_one() {
        let (pool, made) = (Pool::default(), AtomicU32::new(0));
        std::thread::scope(|scope| {
            (0..8).for_each(|_| drop(scope.spawn(|| (0..50).for_each(|key| drop(get(&pool, key % 3, &made))))));
        });
        assert_eq!(made.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn what_could_not_be_made_is_tried_again() {
        let (pool, made) = (Pool::<u32, String>::default(), AtomicU32::new(0));
        assert_eq!(pool.get(|known| *known == 1, || 1, || Err("no")), Err("no"));
        assert_eq!(*get(&pool, 1, &made), "1");
    }
}
