//! Virtual networks: node numbers of users translated to those of the machine, and logical networks laid onto the physical one.
//!
//! A user's programs name *logical* nodes `0..n`. Its [`Table`] says which terminals each of them is (several: aliases, chosen by
//! bits of the address); what it does not name cannot be reached. [`Tables`] holds the tables of all users and of the operating
//! system, knows which logical nodes a terminal is for whom (several: reverse aliases, told apart by the receiver), and changes
//! tables while accesses are under way. A [`Translator`] is the part of one interface that looks entries up and what that costs.
//!
//! A user may see its nodes as a network of their own ([`logical`]); [`embedding`] tells what becomes of its links on the physical
//! network, and [`annealing`] looks for an assignment that stretches them little.

pub mod annealing;
mod counts;
pub mod embedding;
pub mod logical;
pub mod placement;
mod routes;
pub mod sharing;
mod table;
mod tables;
mod translator;
pub mod users;

pub use counts::TranslationCounts;
pub use routes::RoutedPaths;
pub use table::{Entry, Fault, Key, Line, Refusal, Table, TableError};
pub use tables::{SYSTEM, Tables, UpdateError, VirtualNode, Written};
pub use translator::{Costs, Level, LookUp, Translator};
