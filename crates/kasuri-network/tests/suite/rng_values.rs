//! The first draws of each kind, pinned: whoever changes them changes every result, and must mean to.

use kasuri_network::rng::{Purpose, Stream, Streams};

fn stream(purpose: Purpose, entity: u32) -> Stream {
    Streams::new(1).get(purpose, entity)
}

#[test]
fn first_draws_are_pinned() {
    let mut integers = stream(Purpose::Destination, 7);
    assert_eq!([0; 8].map(|_| integers.below(64)), [18, 35, 36, 51, 53, 22, 37, 18]);
    let mut integers = stream(Purpose::Routing, 0);
    assert_eq!([0; 8].map(|_| integers.below(3)), [1, 2, 2, 1, 0, 0, 2, 1]);
    let mut numbers = stream(Purpose::Creation, 0);
    let pinned = [0.5688751222031584, 0.7776234404367912, 0.8747248333529738, 0.02175237745876668];
    assert_eq!([0; 4].map(|_| numbers.unit()), pinned);
    let mut waits = stream(Purpose::Creation, 1);
    assert_eq!([0; 8].map(|_| waits.trials((-0.1f64).ln_1p())), [23, 38, 10, 14, 1, 8, 1, 3]);
}

#[test]
fn streams_of_other_seeds_purposes_and_entities_differ() {
    let draws = |mut stream: Stream| [0; 4].map(|_| stream.below(u32::MAX));
    let first = draws(stream(Purpose::Creation, 0));
    for other in [Streams::new(2).get(Purpose::Creation, 0), stream(Purpose::Destination, 0), stream(Purpose::Creation, 1)] {
        assert_ne!(draws(other), first);
    }
}

/// The mean of n geometric draws of success probability p is 1/p within five standard errors sqrt(1 - p) / (p sqrt(n)).
#[test]
fn trials_have_the_mean_of_their_law() {
    for probability in [1.0f64, 0.5, 0.01] {
        let mut waits = stream(Purpose::Creation, 3);
        let draws = 100_000;
        let sum: u64 = (0..draws).map(|_| waits.trials((-probability).ln_1p())).sum();
        let error = (1.0 - probability).sqrt() / probability / f64::from(draws).sqrt();
        assert!((sum as f64 / f64::from(draws) - 1.0 / probability).abs() <= 5.0 * error);
    }
}
