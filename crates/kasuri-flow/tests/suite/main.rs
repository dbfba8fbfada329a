//! The tests of the flow engine from outside, as one program: it is linked once, and its tests fill all cores.

mod analysis;
mod arbitrated;
mod threads;
