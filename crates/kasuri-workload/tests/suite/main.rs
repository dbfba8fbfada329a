//! The tests of traffic, collectives, programs and schedules from outside, as one program: it is linked once, and its tests fill all cores.

mod collectives;
mod common;
mod embedding;
mod general_schedule;
mod npb_ft;
mod schedule_jobs;
mod schedules;
