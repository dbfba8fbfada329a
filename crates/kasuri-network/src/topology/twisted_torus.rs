//! Twisted tori: rings that close at another place of the other dimensions.

use super::contract::{BuildContext, Topology};
use super::sizes;
use crate::id::{Port, RouterId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A torus in which leaving the last position of a dimension upwards adds a twist to the other coordinates, and leaving position 0 downwards
/// takes it away again.
///
/// Routers and ports are numbered as in a `torus`. Either `shape` with `k`, or `dimensions` with `twist`.
///
/// Labels: routers `coordinate.0`, `coordinate.1`, …; attributes `twisted_torus` = [dimensions…], `twist` = the twists of the dimensions, one
/// list after the other, `terminal_digits`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TwistedTorus {
    /// One of the shapes of the literature, of the size `k`.
    #[serde(default)]
    pub shape: Option<Shape>,
    /// The size of `shape`.
    #[serde(default)]
    pub k: Option<u32>,
    /// Routers in each dimension, in place of `shape`; each at least 2.
    #[serde(default)]
    pub dimensions: Option<Vec<u32>>,
    /// With `dimensions`: for each dimension what is added to each coordinate at its seam, 0 for the dimension itself; "None" for none.
    #[serde(default)]
    pub twist: Option<Twist>,
    /// Terminals on each router.
    #[serde(default = "one")]
    pub concentration: u32,
}

fn one() -> u32 {
    1
}

/// Shapes of the literature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// k x 2k; the first dimension is twisted by k.
    K2k,
    /// k x k x 2k; the first and the second dimension are twisted by k in the third.
    Kk2k,
    /// k x 2k x 2k; the first dimension is twisted by k in both others.
    K2k2k,
}

/// What is added at the seams.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Twist {
    /// Nothing.
    None(Nothing),
    /// By dimension, then by coordinate.
    Each(Vec<Vec<u32>>),
}

/// The word for no twist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Nothing {
    /// A plain torus.
    None,
}

impl Member for TwistedTorus {
    const NAME: &'static str = "twisted-torus";
    const SUMMARY: &'static str = "torus whose rings close with an offset in the other dimensions";
    const SOURCE: &'static str = "Camara et al., Twisted Torus Topologies for Enhanced Interconnection Networks, IEEE Trans. Parallel Distrib. \
                                  Syst. 21 (2010); kk2k and k2k2k: Jouppi et al., TPU v4, ISCA 2023, section 2.9";
    const EXAMPLE: &'static str = "shape = \"kk2k\"\nk = 2";
}

impl Topology for TwistedTorus {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let (name, rings) = self.rings()?;
        context.channels.check(rings.dimensions.len())?;
        rings.build(&format!("twisted-torus {name}"), self.concentration, context)
    }
}

impl TwistedTorus {
    fn rings(&self) -> Result<(String, Rings), NetworkError> {
        sizes::positive("concentration", self.concentration)?;
        match (self.shape, &self.dimensions) {
            (Some(shape), None) => {
                if self.twist.is_some() {
                    return Err(NetworkError::parameter("twist", "conflicts with shape, which has its twist; give dimensions instead"));
                }
                let k = self.k.ok_or_else(|| NetworkError::parameter("k", "is missing; it gives the size of the shape, at least 2"))?;
                sizes::at_least("k", k, 2)?;
                let double = sizes::product("routers in a dimension", &[2, k])?;
                let (word, dimensions, twist) = match shape {
                    Shape::K2k => ("k2k", vec![k, double], vec![vec![0, k], vec![0, 0]]),
                    Shape::Kk2k => ("kk2k", vec![k, k, double], vec![vec![0, 0, k], vec![0, 0, k], vec![0; 3]]),
                    Shape::K2k2k => ("k2k2k", vec![k, double, double], vec![vec![0, k, k], vec![0; 3], vec![0; 3]]),
                };
                Ok((format!("{word} {k}"), Rings { dimensions, twist }.checked(self.concentration)?))
            }
            (None, Some(dimensions)) => {
                if self.k.is_some() {
                    return Err(NetworkError::parameter("k", "conflicts with dimensions; it is the size of a shape"));
                }
                let count = dimensions.len();
                let twist = match &self.twist {
                    Some(Twist::Each(twist)) => twist.clone(),
                    Some(Twist::None(_)) | None => vec![vec![0; count]; count],
                };
                let rings = Rings { dimensions: dimensions.clone(), twist }.checked(self.concentration)?;
                Ok((format!("{dimensions:?} twist {:?}", rings.twist), rings))
            }
            (Some(_), Some(_)) => Err(NetworkError::parameter("dimensions", "conflicts with shape; give one of the two")),
            (None, None) => {
                let problem = "is missing; it must be \"k2k\" or \"kk2k\" or \"k2k2k\", with k, or give dimensions and twist";
                Err(NetworkError::parameter("shape", problem))
            }
        }
    }
}

/// A torus with twists at its seams.
#[derive(Debug)]
struct Rings {
    dimensions: Vec<u32>,
    twist: Vec<Vec<u32>>,
}

impl Rings {
    fn checked(self, concentration: u32) -> Result<Self, NetworkError> {
        let Self { dimensions, twist } = &self;
        sizes::all_at_least("dimensions", dimensions, 2)?;
        let count = dimensions.len();
        if twist.len() != count || twist.iter().any(|list| list.len() != count) {
            let problem = format!("must have {count} lists of {count} numbers: for each dimension what its seam adds to each coordinate");
            return Err(NetworkError::parameter("twist", problem));
        }
        if let Some(dimension) = (0..count).find(|&dimension| twist[dimension][dimension] != 0) {
            let problem = format!("adds {} to dimension {dimension} at its own seam; it must be 0", twist[dimension][dimension]);
            return Err(NetworkError::parameter("twist", problem));
        }
        let routers = sizes::product("routers", dimensions)?;
        sizes::product("terminals", &[routers, concentration])?;
        Ok(self)
    }

    fn build(&self, name: &str, concentration: u32, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let Self { dimensions, twist } = self;
        let mut builder = NetworkBuilder::new(name);
        let routers: u32 = dimensions.iter().product();
        let first_terminal_port = 2 * dimensions.len() as u32;
        for _ in 0..routers {
            builder.add_router(first_terminal_port as usize + concentration as usize)?;
        }
        let strides: Vec<u32> = (0..dimensions.len()).map(|dimension| dimensions[..dimension].iter().product()).collect();
        for (dimension, (&radix, seam)) in dimensions.iter().zip(twist).enumerate() {
            let (up, down) = (2 * dimension as Port, 2 * dimension as Port + 1);
            for router in 0..routers {
                let at = |other: usize| router / strides[other] % dimensions[other];
                let next = if at(dimension) + 1 < radix {
                    router + strides[dimension]
                } else {
                    let turned = |other: usize| (u64::from(at(other)) + u64::from(seam[other])) % u64::from(dimensions[other]);
                    (0..dimensions.len()).filter(|&other| other != dimension).map(|other| turned(other) as u32 * strides[other]).sum()
                };
                builder.add_link((RouterId(router), up), (RouterId(next), down), context.channels.link(dimension));
            }
            builder
                .label_routers(format!("coordinate.{dimension}"), (0..routers).map(|router| router / strides[dimension] % radix).collect());
        }
        for terminal in 0..routers * concentration {
            let port = first_terminal_port + terminal % concentration;
            builder.add_terminal(RouterId(terminal / concentration), port as Port, context.channels.terminal_link());
        }
        builder.set_attribute("twisted_torus", dimensions.clone());
        builder.set_attribute("twist", twist.concat());
        let digits = std::iter::once(concentration).chain(dimensions.iter().copied());
        builder.set_attribute("terminal_digits", digits.filter(|&radix| radix > 1).collect());
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::metrics::Summary;
    use crate::topology::torus::Torus;
    use crate::topology::{ChannelParameters, NoFiles};

    const CONTEXT: fn(&ChannelParameters) -> BuildContext<'_> = |channels| BuildContext { channels, files: &NoFiles, structure_seed: 0 };

    fn parsed(text: &str) -> Result<Network, NetworkError> {
        let torus: TwistedTorus = toml::from_str(text).unwrap();
        torus.build(&CONTEXT(&ChannelParameters::default()))
    }

    #[test]
    fn without_a_twist_it_is_a_torus() {
        let plain = Torus { dimensions: vec![4, 2, 3], concentration: 2 }.build(&CONTEXT(&ChannelParameters::default())).unwrap();
        for text in ["twist = \"None\"", "", "twist = [[0, 0, 0], [0, 0, 0], [0, 0, 0]]"] {
            let twisted = parsed(&format!("dimensions = [4, 2, 3]\nconcentration = 2\n{text}")).unwrap();
            assert_eq!(Summary::of(&twisted), Summary::of(&plain));
        }
    }

    /// Diameters of the shapes of a TPU: 6 in place of 8 for 4 x 4 x 8, 6 in place of 10 for 4 x 8 x 8.
    #[test]
    fn twists_bring_routers_nearer() {
        for (shape, k, diameter) in [("kk2k", 4, 6), ("k2k2k", 4, 6), ("k2k", 4, 4)] {
            let summary = Summary::of(&parsed(&format!("shape = \"{shape}\"\nk = {k}")).unwrap());
            assert_eq!(summary.diameter_routers, Some(diameter), "{shape}");
        }
        assert_eq!(Summary::of(&parsed("dimensions = [4, 4, 8]").unwrap()).diameter_routers, Some(8));
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (text, key) in [
            ("", "shape"),
            ("shape = \"k2k\"", "k"),
            ("shape = \"k2k\"\nk = 1", "k"),
            ("shape = \"k2k\"\nk = 2\ndimensions = [2, 2]", "dimensions"),
            ("shape = \"k2k\"\nk = 2\ntwist = \"None\"", "twist"),
            ("dimensions = [4, 4]\nk = 2", "k"),
            ("dimensions = []", "dimensions"),
            ("dimensions = [4, 1]", "dimensions"),
            ("dimensions = [4, 4]\ntwist = [[0, 1]]", "twist"),
            ("dimensions = [4, 4]\ntwist = [[1, 1], [0, 0]]", "twist"),
            ("dimensions = [4, 4]\nconcentration = 0", "concentration"),
        ] {
            assert!(matches!(parsed(text), Err(NetworkError::Parameter { key: found, .. }) if found == key), "{text}");
        }
        for text in
            ["shape = \"kk2k\"\nk = 4294967295", "dimensions = [65536, 65536, 65536]", "dimensions = [4, 4]\nconcentration = 4294967295"]
        {
            assert!(matches!(parsed(text), Err(NetworkError::TooLarge(_))), "{text}");
        }
    }
}
