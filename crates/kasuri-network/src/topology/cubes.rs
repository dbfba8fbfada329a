//! Cubes of routers whose faces meet in optical switches: a torus that is wired anew for each job.

use super::contract::{BuildContext, Topology};
use super::sizes;
use crate::id::{Port, RouterId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Cubes of c x c x c routers, c = `cube`, in an `arrangement` of A x B x C; for each dimension a permutation of the cubes says to which cube's
/// lower face the upper face of a cube leads, at the same position on the face.
///
/// Router = cube x c^3 + x + c y + c^2 z, cube number = X + A Y + A B Z. Ports as in a torus of three dimensions: 0 and 1 up and down in x, 2
/// and 3 in y, 4 and 5 in z, then the terminals. Unless `shape` or `permutations` says otherwise, each upper face leads to the next cube of the
/// arrangement, and that is the torus cA x cB x cC.
///
/// Labels: routers `cube`, `position` (within the cube); attributes `cubes` = [c, A, B, C].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cubes {
    /// Routers along the edge of a cube, at least 2.
    pub cube: u32,
    /// Cubes in each of the three dimensions.
    pub arrangement: [u32; 3],
    /// A way to join the faces, in place of `permutations`.
    #[serde(default)]
    pub shape: Option<Wrapping>,
    /// For each dimension a permutation of the cubes: the cube that the upper face of each leads to; or text such as "q+1, q+2, q+3 mod 6"; or
    /// for each dimension a permutation for each position on the face, the lower coordinate fastest.
    #[serde(default)]
    pub permutations: Option<Permutations>,
    /// Terminals on each router.
    #[serde(default = "one")]
    pub concentration: u32,
}

fn one() -> u32 {
    1
}

/// How the faces are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Wrapping {
    /// As in a torus of the arrangement's shape.
    Torus,
    /// In every dimension the upper face of cube q leads to cube q + 1, and that of the last to cube 0: two cubes of 4 are the twisted torus
    /// 4 x 4 x 8.
    Twisted,
}

/// Permutations of the cubes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Permutations {
    /// Steps: "q+1, q+2, q+3 mod 6".
    Text(String),
    /// By dimension.
    Each(Vec<Vec<u32>>),
    /// By dimension, then by position on the face.
    EachPosition(Vec<Vec<Vec<u32>>>),
}

impl Member for Cubes {
    const NAME: &'static str = "cubes";
    const SUMMARY: &'static str = "torus of cubes whose faces are joined by reconfigurable optical switches";
    const SOURCE: &'static str = "Jouppi et al., TPU v4: An Optically Reconfigurable Supercomputer, ISCA 2023, sections 2.1 to 2.3";
    const EXAMPLE: &'static str = "cube = 2\narrangement = [1, 1, 2]\nshape = \"twisted\"";
}

impl Topology for Cubes {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let (cubes, routers) = self.check()?;
        let next = self.next_cubes(cubes)?;
        context.channels.check(3)?;
        let Self { cube: c, arrangement: [a, b, _], concentration, .. } = *self;
        let words = match (&self.permutations, self.shape) {
            (Some(Permutations::Text(text)), _) => format!(" {text}"),
            (Some(_), _) => " permuted".to_owned(),
            (None, Some(Wrapping::Twisted)) => " twisted".to_owned(),
            _ => String::new(),
        };
        let mut builder = NetworkBuilder::new(format!("cubes {c} x {:?}{words}", self.arrangement));
        for _ in 0..routers {
            builder.add_router(6 + concentration as usize)?;
        }
        let strides = [1, c, c * c];
        for (router, dimension) in (0..routers).flat_map(|router| (0..3).map(move |dimension| (router, dimension))) {
            let (cube, within) = (router / (c * c * c), router % (c * c * c));
            let at = |dimension: usize| within / strides[dimension] % c;
            let other = if at(dimension) + 1 < c {
                router + strides[dimension]
            } else {
                let [low, high] = [[1, 2], [0, 2], [0, 1]][dimension];
                let position = at(low) + c * at(high);
                next[dimension](position, cube) * c * c * c + within - (c - 1) * strides[dimension]
            };
            let (up, down) = (2 * dimension as Port, 2 * dimension as Port + 1);
            builder.add_link((RouterId(router), up), (RouterId(other), down), context.channels.link(dimension));
        }
        for terminal in 0..routers * concentration {
            let port = 6 + terminal % concentration;
            builder.add_terminal(RouterId(terminal / concentration), port as Port, context.channels.terminal_link());
        }
        builder.label_routers("cube", (0..routers).map(|router| router / (c * c * c)).collect());
        builder.label_routers("position", (0..routers).map(|router| router % (c * c * c)).collect());
        builder.set_attribute("cubes", vec![c, a, b, cubes / a / b]);
        let digits = [concentration, c, c, c, cubes].into_iter().filter(|&radix| radix > 1);
        builder.set_attribute("terminal_digits", digits.collect());
        builder.finish()
    }
}

/// The cube that the upper face of a cube leads to, from the position on the face and the cube.
type Next<'a> = Box<dyn Fn(u32, u32) -> u32 + 'a>;

impl Cubes {
    /// The numbers of cubes and of routers.
    fn check(&self) -> Result<(u32, u32), NetworkError> {
        sizes::at_least("cube", self.cube, 2)?;
        sizes::all_at_least("arrangement", &self.arrangement, 1)?;
        sizes::positive("concentration", self.concentration)?;
        if self.shape.is_some() && self.permutations.is_some() {
            return Err(NetworkError::parameter("permutations", "conflicts with shape; give one of the two"));
        }
        let cubes = sizes::product("cubes", &self.arrangement)?;
        let routers = sizes::product("routers", &[cubes, self.cube, self.cube, self.cube])?;
        sizes::product("terminals", &[routers, self.concentration])?;
        Ok((cubes, routers))
    }

    fn next_cubes(&self, cubes: u32) -> Result<Vec<Next<'_>>, NetworkError> {
        let positions = (self.cube * self.cube) as usize;
        match &self.permutations {
            Some(Permutations::Text(text)) => {
                let steps = parse_steps(text, cubes).map_err(|problem| NetworkError::parameter("permutations", problem))?;
                Ok(steps.into_iter().map(|step| Box::new(move |_, cube| (cube + step) % cubes) as Next<'_>).collect())
            }
            Some(Permutations::Each(each)) => {
                check_count(each.len(), 3, "lists, one for each dimension")?;
                each.iter().try_for_each(|list| check_permutation(list, cubes))?;
                Ok(each.iter().map(|list| Box::new(|_, cube: u32| list[cube as usize]) as Next<'_>).collect())
            }
            Some(Permutations::EachPosition(each)) => {
                check_count(each.len(), 3, "lists, one for each dimension")?;
                for lists in each {
                    check_count(lists.len(), positions, "lists in each dimension, one for each position on the face")?;
                    lists.iter().try_for_each(|list| check_permutation(list, cubes))?;
                }
                Ok(each.iter().map(|lists| Box::new(|place: u32, cube: u32| lists[place as usize][cube as usize]) as Next<'_>).collect())
            }
            None if self.shape == Some(Wrapping::Twisted) => {
                Ok((0..3).map(|_| Box::new(move |_, cube: u32| (cube + 1) % cubes) as Next<'_>).collect())
            }
            None => Ok((0..3).map(|dimension| self.next_in_torus(dimension)).collect()),
        }
    }

    /// The next cube of the arrangement.
    fn next_in_torus(&self, dimension: usize) -> Next<'_> {
        let stride: u32 = self.arrangement[..dimension].iter().product();
        let count = self.arrangement[dimension];
        Box::new(move |_, cube| {
            let at = cube / stride % count;
            cube - at * stride + (at + 1) % count * stride
        })
    }
}

fn check_count(count: usize, wanted: usize, of: &str) -> Result<(), NetworkError> {
    if count == wanted { Ok(()) } else { Err(NetworkError::parameter("permutations", format!("has {count} {of}; it must have {wanted}"))) }
}

fn check_permutation(list: &[u32], cubes: u32) -> Result<(), NetworkError> {
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    if sorted.iter().copied().eq(0..cubes) {
        return Ok(());
    }
    Err(NetworkError::parameter("permutations", format!("{list:?} is no permutation of the cubes 0 to {}", cubes - 1)))
}

/// The steps of "q+1, q+2, q+3 mod 6".
fn parse_steps(text: &str, cubes: u32) -> Result<Vec<u32>, String> {
    let wrong = || format!("is \"{text}\"; it must be of the form \"q+1, q+2, q+3 mod {cubes}\", or lists of numbers");
    let (steps, modulus) = text.split_once("mod").ok_or_else(wrong)?;
    if modulus.trim().parse() != Ok(cubes) {
        return Err(format!("is \"{text}\", but there are {cubes} cubes; it must end with \"mod {cubes}\""));
    }
    let step = |word: &str| match word.trim().strip_prefix('q')?.trim() {
        "" => Some(0),
        rest => rest.strip_prefix('+')?.trim().parse::<u32>().ok().map(|step| step % cubes),
    };
    let steps: Option<Vec<u32>> = steps.split(',').map(step).collect();
    steps.filter(|steps| steps.len() == 3).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::metrics::Summary;
    use crate::topology::torus::Torus;
    use crate::topology::twisted_torus::TwistedTorus;
    use crate::topology::{ChannelParameters, NoFiles};

    const CONTEXT: fn(&ChannelParameters) -> BuildContext<'_> = |channels| BuildContext { channels, files: &NoFiles, structure_seed: 0 };

    fn parsed(text: &str) -> Result<Network, NetworkError> {
        let cubes: Cubes = toml::from_str(text).unwrap();
        cubes.build(&CONTEXT(&ChannelParameters::default()))
    }

    /// An arrangement A x B x C is the torus cA x cB x cC but for its numbers; two cubes whose upper faces all lead to the other one are the
    /// twisted torus k x k x 2k.
    #[test]
    fn arrangements_are_tori_and_two_cubes_a_twisted_one() {
        let channels = ChannelParameters::default();
        let torus = Torus { dimensions: vec![6, 4, 2], concentration: 1 }.build(&CONTEXT(&channels)).unwrap();
        let cubes = Summary::of(&parsed("cube = 2\narrangement = [3, 2, 1]").unwrap());
        assert_eq!((cubes.histogram.clone(), cubes.links), (Summary::of(&torus).histogram, Summary::of(&torus).links));
        let shape: TwistedTorus = toml::from_str("shape = \"kk2k\"\nk = 3").unwrap();
        let twisted = Summary::of(&shape.build(&CONTEXT(&channels)).unwrap());
        for text in ["shape = \"twisted\"", "permutations = \"q+1, q+1, q+1 mod 2\"", "permutations = [[1, 0], [1, 0], [1, 0]]"] {
            assert_eq!(Summary::of(&parsed(&format!("cube = 3\narrangement = [1, 1, 2]\n{text}")).unwrap()).histogram, twisted.histogram);
        }
    }

    #[test]
    fn permutations_may_differ_by_position() {
        let all = "permutations = [[1, 0], [0, 1], [1, 0]]";
        let each = "permutations = [[[1, 0], [1, 0], [1, 0], [1, 0]], [[0, 1], [0, 1], [0, 1], [0, 1]], [[1, 0], [1, 0], [1, 0], [1, 0]]]";
        let [all, each] = [all, each].map(|text| Summary::of(&parsed(&format!("cube = 2\narrangement = [1, 1, 2]\n{text}")).unwrap()));
        assert_eq!(all, each);
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (text, key) in [
            ("cube = 1\narrangement = [1, 1, 2]", "cube"),
            ("cube = 2\narrangement = [1, 0, 2]", "arrangement"),
            ("cube = 2\narrangement = [1, 1, 2]\nconcentration = 0", "concentration"),
            ("cube = 2\narrangement = [1, 1, 2]\nshape = \"twisted\"\npermutations = \"q, q, q mod 2\"", "permutations"),
            ("cube = 2\narrangement = [1, 1, 2]\npermutations = \"q+1, q+1 mod 2\"", "permutations"),
            ("cube = 2\narrangement = [1, 1, 2]\npermutations = \"q+1, q+1, q+1 mod 3\"", "permutations"),
            ("cube = 2\narrangement = [1, 1, 2]\npermutations = [[0, 1], [0, 0], [0, 1]]", "permutations"),
            ("cube = 2\narrangement = [1, 1, 2]\npermutations = [[0, 1], [0, 1]]", "permutations"),
        ] {
            assert!(matches!(parsed(text), Err(NetworkError::Parameter { key: found, .. }) if found == key), "{text}");
        }
        for text in ["cube = 4294967295\narrangement = [1, 1, 2]", "cube = 2\narrangement = [4294967295, 2, 2]"] {
            assert!(matches!(parsed(text), Err(NetworkError::TooLarge(_))), "{text}");
        }
    }
}
