//! NPB FT: a spectral method with Fourier transforms in three dimensions, of which each needs one all-to-all.

use super::contract::{ApplicationError, Demand, Entry};

/// FT among the applications.
pub const ENTRY: Entry = Entry {
    name: "npb-ft",
    summary: "NAS Parallel Benchmarks FT: transforms in three dimensions, slabs of one, an all-to-all for each transform",
    source: "Bailey et al., The NAS Parallel Benchmarks, NASA RNR-94-007, section 3.5; NPB 3.4, FT, layout 1D, and its count of operations",
    demand,
};

/// The name of a class, its points in x, y and z, and its iterations.
type Class = (&'static str, [u32; 3], u32);

const CLASSES: [Class; 7] = [
    ("S", [64, 64, 64], 6),
    ("W", [128, 128, 32], 6),
    ("A", [256, 256, 128], 6),
    ("B", [512, 256, 256], 20),
    ("C", [512, 512, 512], 20),
    ("D", [2048, 1024, 1024], 25),
    ("E", [4096, 2048, 2048], 25),
];

/// A complex number of double precision.
const POINT_BYTES: u64 = 16;

/// One transform forward, then one back in every iteration, each with its all-to-all; each rank moves its part of the array once in
/// memory for it. The operations of the whole program are spread evenly over the transforms. Left out: after each transform back all
/// ranks add up one number, 16 bytes, to check it; and before the timed part everything is done once.
fn demand(class: &str, ranks: u32) -> Result<Demand, ApplicationError> {
    let Some((_, [nx, ny, nz], iterations)) = CLASSES.into_iter().find(|(name, ..)| *name == class) else {
        let names: Vec<&str> = CLASSES.iter().map(|(name, ..)| *name).collect();
        return Err(ApplicationError { key: "class", problem: format!("is \"{class}\"; it must be one of {}", names.join(", ")) });
    };
    if ranks == 0 || ny % ranks != 0 || nz % ranks != 0 {
        let problem = format!("are {ranks}; of class {class} they must divide {nz} planes and {ny} rows into equal parts");
        return Err(ApplicationError { key: "ranks", problem });
    }
    let points = u64::from(nx) * u64::from(ny) * u64::from(nz);
    let own = POINT_BYTES * points / u64::from(ranks);
    let stages = iterations + 1;
    let flops = operations(points as f64, f64::from(iterations)) / f64::from(ranks) / f64::from(stages);
    Ok(Demand { stages, flops, memory_bytes: own, block_bytes: own / u64::from(ranks) })
}

/// NPB's own count of the floating-point operations of the whole program.
fn operations(points: f64, iterations: f64) -> f64 {
    let log = points.ln();
    points * (14.8157 + 7.19641 * log + (5.23518 + 7.21113 * log) * iterations)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Blocks of an all-to-all on 8, 16 and 32 ranks are the array over the square of the ranks.
    #[test]
    fn blocks_are_the_array_over_the_square_of_the_ranks() {
        for (class, array) in [("S", 4 * MIB), ("W", 8 * MIB), ("A", 128 * MIB), ("B", 512 * MIB), ("C", 2048 * MIB), ("D", 32768 * MIB)] {
            for ranks in [8, 16, 32] {
                let demand = demand(class, ranks).unwrap();
                assert_eq!(demand.block_bytes, array / u64::from(ranks * ranks), "class {class}, {ranks} ranks");
                assert_eq!(demand.memory_bytes, array / u64::from(ranks));
            }
        }
    }

    /// The operations that NPB prints, in thousand millions, and one stage for each iteration and the first transform.
    #[test]
    fn operations_are_those_of_the_benchmark() {
        for (class, gflop, iterations) in [("A", 7.14, 6), ("B", 92.05, 20), ("C", 396.4, 20), ("D", 8963.7, 25)] {
            let demand = demand(class, 16).unwrap();
            assert_eq!(demand.stages, iterations + 1);
            let whole = demand.flops * 16.0 * f64::from(demand.stages) / 1e9;
            assert!((whole / gflop - 1.0).abs() < 1e-3, "class {class}: {whole}");
        }
    }

    #[test]
    fn other_classes_and_unequal_parts_are_refused() {
        assert_eq!(demand("F", 8).unwrap_err().key, "class");
        for ranks in [0, 3, 64] {
            assert_eq!(demand("W", ranks).unwrap_err().key, "ranks", "{ranks}");
        }
    }
}
