//! Arbiters of one level, by their kind.

use crate::record::arbiters::age::Age;
use crate::record::arbiters::arbiter::Arbiters;
use crate::record::arbiters::matrix::Matrix;
use crate::record::arbiters::round_robin::RoundRobin;
use kasuri_model::router::Arbiter;

pub(crate) fn single(kind: Arbiter, arbiters: u32, inputs: u32) -> Box<dyn Arbiters> {
    match kind {
        Arbiter::RoundRobin => Box::new(RoundRobin::new(arbiters, inputs)),
        Arbiter::Matrix => Box::new(Matrix::new(arbiters, inputs)),
        Arbiter::Age => Box::new(Age::new(arbiters, inputs)),
    }
}
