//! The tests of reading experiments and files of networks from outside, as one program: it is linked once, and its tests fill all cores.

mod byte_order_marks;
mod common;
mod formats;
mod programs;
#[path = "../../../kasuri-network/tests/suite/common/random.rs"]
mod random;
mod tables;
mod traffic;
mod users;
