//! Times the engine alone: `cargo run --release -p kasuri-flit --example flit_speed CASE`.
#[path = "../tests/suite/common/mod.rs"]
mod common;
use common::{Fixed, Setup, ToTheEnd};
use kasuri_model::router::RouterParameters;

fn main() {
    let case = std::env::args().nth(1).unwrap_or_else(|| "tree16".to_owned());
    let simd = std::env::args().nth(2).unwrap_or_else(|| "auto".to_owned());
    let started = std::time::Instant::now();
    let tree = |arity| Setup {
        router: RouterParameters { virtual_channels: 2, buffer_flits: 10, ..RouterParameters::default() },
        packet_flits: 40,
        simd: simd.clone(),
        ..Setup::fat_tree(arity, 3).batch(10)
    };
    let outcome = match case.as_str() {
        "mesh8" => Setup { load: 0.3, simd: simd.clone(), ..Setup::mesh(&[8, 8]) }.run(&mut Fixed::new(0, 100_000)),
        "mesh32" => Setup { load: 0.1, simd: simd.clone(), ..Setup::mesh(&[32, 32]) }.run(&mut Fixed::new(0, 4_000)),
        "idle8" => {
            Setup { load: 0.001, simd: simd.clone(), max_cycles: 100_000_000, ..Setup::mesh(&[8, 8]) }.run(&mut Fixed::new(0, 10_000_000))
        }
        "tree16" => tree(16).run(&mut ToTheEnd),
        "tree36" => tree(36).run(&mut ToTheEnd),
        _ => tree(8).run(&mut ToTheEnd),
    };
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{case}: {:?} cycles {} flit hops {} mean latency {:?} net {:?} flit {:?} hops {:?} completion {:?} | {seconds:.3} s, {:.1} Mfh/s",
        outcome.status,
        outcome.cycles,
        outcome.flit_hops,
        outcome.packet_latency.mean(),
        outcome.network_latency.mean(),
        outcome.flit_latency.mean(),
        outcome.hops.mean(),
        outcome.completion_time,
        outcome.flit_hops as f64 / seconds / 1e6
    );
}
