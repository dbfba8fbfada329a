//! NCCL's topology of a node (`NCCL_TOPO_FILE`, `NCCL_TOPO_DUMP_FILE`): CPUs, PCI switches, GPUs, network adapters, and what joins them.
//!
//! Source: `src/graph/topo.cc` and `topo.h` of ROCm/rccl 0cbce2a75, which has NVIDIA's code and AMD's: elements, attributes and the
//! bandwidths that NCCL derives from them; NVLinks of sm 100 on, hosts (`host_hash`) and what it fills in (`xml.cc`, `ncclTopoFillGpu`,
//! `ncclTopoFillNet`): NVIDIA/nccl 5067397c2.
//!
//! Clouds ship templates: a file without any `<gpu rank=…>` names GPUs by their `<pci>` alone, and one without any `<net dev=…>` adapters.

use crate::error::FormatError;
use crate::text::short;
use crate::xml::{self, Xml};
use roxmltree::Node as Element;
use std::collections::BTreeMap;

/// A node's topology.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// The file's name.
    pub name: String,
    /// CPUs, switches, GPUs, adapters, in the order of the file; then the NVSwitch.
    pub devices: Vec<Device>,
    /// What joins them; each link once.
    pub links: Vec<Joined>,
    /// Ports to the network.
    pub nets: Vec<Net>,
    /// How many machines the CPUs are of.
    pub hosts: u32,
    /// What was found that is worth a look.
    pub notes: Vec<String>,
}

/// A part of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// What it is.
    pub kind: Kind,
    /// Its name: `cpu0`, `gpu3`, and with its address on the bus where it has no number.
    pub name: String,
    /// Its address on the PCI bus; nothing for CPUs and the NVSwitch.
    pub busid: String,
    /// The machine, from 0.
    pub host: u32,
}

/// What a part of a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A NUMA node.
    Cpu,
    /// A PCI switch.
    Switch,
    /// All NVSwitches of the node.
    NvSwitch,
    /// A GPU.
    Gpu,
    /// A network adapter.
    Nic,
}

/// A link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Joined {
    /// The positions of its ends.
    pub ends: [usize; 2],
    /// GB/s in each direction.
    pub gbyte_per_second: f64,
}

/// A port of an adapter.
#[derive(Clone, Debug, PartialEq)]
pub struct Net {
    /// Its name, `mlx5_0`.
    pub name: String,
    /// The position of its adapter.
    pub nic: usize,
    /// GB/s in each direction.
    pub gbyte_per_second: f64,
    /// Whether the file gives this rate; otherwise it is that of the adapter's own link.
    pub has_rate: bool,
}

/// GB/s between a CPU and an adapter on its chip, where the file has no PCI device between (`LOC_BW`).
const WITHIN_CHIP: f64 = 5000.0;

/// GB/s of a port without a rate in the file, which is that of a `speed` of 0 or below: 10 Gbit/s.
const DEFAULT_NET: f64 = 1.25;

/// Parts of a node, at most.
const MAX_DEVICES: usize = 4096;

/// Elements within each other, at most.
const MAX_LEVELS: usize = 32;

/// Reads a topology.
///
/// # Errors
/// No XML, another format of NCCL, an attribute that is missing or wrong; with the line.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Topology, FormatError> {
    let document = xml::document(name, bytes)?;
    let topology =
        Topology { name: name.to_owned(), devices: Vec::new(), links: Vec::new(), nets: Vec::new(), hosts: 0, notes: Vec::new() };
    let has = |tag: &str, key: &str| document.descendants().any(|element| element.has_tag_name(tag) && element.has_attribute(key));
    let mut reader = Reader {
        xml: Xml { name, document: &document },
        topology,
        names_gpus: has("gpu", "rank"),
        names_nets: has("net", "dev"),
        hashes: Vec::new(),
        by_busid: BTreeMap::new(),
        direct: Vec::new(),
        cpus: Vec::new(),
    };
    reader.system(document.root_element())?;
    reader.join_gpus();
    reader.join_cpus();
    reader.note_template();
    reader.topology.hosts = reader.hashes.len() as u32;
    Ok(reader.topology)
}

/// A line of a GPU: what it leads to.
struct Direct<'a> {
    gpu: usize,
    cpu: usize,
    gbyte_per_second: f64,
    to: To<'a>,
}

/// Where a line of a GPU ends.
enum To<'a> {
    Gpu(&'a str),
    NvSwitch,
    Cpu,
}

struct Reader<'a> {
    xml: Xml<'a>,
    topology: Topology,
    /// Does the file say which GPUs, and which ports of adapters, take part? Without that it is a template, and all do.
    names_gpus: bool,
    names_nets: bool,
    /// The machines, by their hashes.
    hashes: Vec<&'a str>,
    /// By machine and address: GPUs, and adapters without the last digit of their address.
    by_busid: BTreeMap<(u32, String), usize>,
    direct: Vec<Direct<'a>>,
    /// CPUs, and what a link between two of their kind carries.
    cpus: Vec<(usize, f64)>,
}

impl<'a> Reader<'a> {
    fn number(&self, element: Element<'a, 'a>, key: &str) -> Result<f64, FormatError> {
        let text = self.xml.needed(element, key)?;
        let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite() && number.abs() <= 1e9);
        number.ok_or_else(|| self.xml.error(element, format!("{key} is `{}`; it must be a number", short(text))))
    }

    /// A number of links or the like: 1 or more.
    fn count(&self, element: Element<'a, 'a>) -> Result<f64, FormatError> {
        let count = self.number(element, "count")?;
        match count >= 1.0 {
            true => Ok(count),
            false => Err(self.xml.error(element, format!("count is `{count}`; it must be 1 or more"))),
        }
    }

    /// The machine of the CPU that is being read.
    fn host(&self) -> u32 {
        self.topology.devices.last().map_or(0, |device| device.host)
    }

    fn add(&mut self, element: Element<'_, '_>, kind: Kind, name: String, busid: &str) -> Result<usize, FormatError> {
        if self.topology.devices.len() >= MAX_DEVICES {
            return Err(self.xml.error(element, format!("is one part too many: at most {MAX_DEVICES} are read")));
        }
        let host = self.host();
        self.topology.devices.push(Device { kind, name, busid: busid.to_owned(), host });
        Ok(self.topology.devices.len() - 1)
    }

    fn link(&mut self, one: usize, other: usize, gbyte_per_second: f64) {
        self.topology.links.push(Joined { ends: [one, other], gbyte_per_second });
    }

    fn system(&mut self, root: Element<'a, 'a>) -> Result<(), FormatError> {
        match root.tag_name().name() {
            "system" => {}
            "graphs" => {
                return Err(self
                    .xml
                    .error(root, "is a file of NCCL's graphs (NCCL_GRAPH_FILE), which says no topology; give NCCL_TOPO_DUMP_FILE"));
            }
            other => return Err(self.xml.error(root, format!("begins with <{}>; a topology of NCCL begins with <system>", short(other)))),
        }
        let version = self.xml.needed(root, "version")?;
        if !["1", "2"].contains(&version.trim()) {
            return Err(self.xml.error(root, format!("version is `{}`; versions 1 and 2 are read", short(version))));
        }
        for element in root.children().filter(|child| child.has_tag_name("cpu")) {
            let numa = self.xml.needed(element, "numaid")?;
            let cpu = self.add(element, Kind::Cpu, format!("cpu{numa}"), "")?;
            let hash = element.attribute("host_hash").unwrap_or_default();
            let host = self.hashes.iter().position(|known| *known == hash).unwrap_or_else(|| {
                self.hashes.push(hash);
                self.hashes.len() - 1
            });
            self.topology.devices[cpu].host = host as u32;
            self.cpus.push((cpu, between_cpus(element)));
            self.inside(element, cpu, cpu)?;
        }
        if self.cpus.is_empty() {
            return Err(self.xml.error(root, "has no <cpu>"));
        }
        Ok(())
    }

    /// The elements in a CPU or a PCI switch.
    fn inside(&mut self, element: Element<'a, 'a>, parent: usize, cpu: usize) -> Result<(), FormatError> {
        for child in element.children().filter(Element::is_element) {
            match child.tag_name().name() {
                "pci" => self.pci(child, parent, cpu)?,
                "nic" => {
                    let name = format!("nic at {}", self.topology.devices[parent].name);
                    let nic = self.add(child, Kind::Nic, name, "")?;
                    self.link(parent, nic, WITHIN_CHIP);
                    self.nets(child, nic, DEFAULT_NET)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn pci(&mut self, element: Element<'a, 'a>, parent: usize, cpu: usize) -> Result<(), FormatError> {
        if element.ancestors().nth(MAX_LEVELS).is_some() {
            return Err(self.xml.error(element, format!("is nested in more than {MAX_LEVELS} others")));
        }
        let (busid, class) = (self.xml.needed(element, "busid")?, self.xml.needed(element, "class")?);
        let speed = pci_gbyte_per_second(element.attribute("link_speed").unwrap_or_default(), element.attribute("link_width"));
        let speed = speed.ok_or_else(|| {
            let width = element.attribute("link_width").unwrap_or_default();
            self.xml.error(element, format!("link_width is `{}`; it must be a whole number of lanes, 0 to 64", short(width)))
        })?;
        let child = |tag: &str| element.children().find(|child| child.has_tag_name(tag));
        let kind = match (child("gpu"), child("nic")) {
            (Some(_), _) => Kind::Gpu,
            (None, Some(_)) => Kind::Nic,
            (None, None) => kind_of(class),
        };
        match kind {
            Kind::Gpu => {
                let gpu = child("gpu").filter(|gpu| !self.names_gpus || gpu.attribute("rank").is_some());
                if gpu.is_none() && self.names_gpus {
                    return Ok(());
                }
                let number = match gpu {
                    Some(gpu) if self.names_gpus => self.xml.needed(gpu, "dev")?.to_owned(),
                    _ => self.topology.devices.iter().filter(|device| device.kind == Kind::Gpu).count().to_string(),
                };
                let device = self.add(element, Kind::Gpu, format!("gpu{number}"), busid)?;
                if self.by_busid.insert((self.host(), address(busid)), device).is_some() {
                    return Err(self.xml.error(element, format!("has a second device at {}", short(busid))));
                }
                self.link(parent, device, speed);
                gpu.map_or(Ok(()), |gpu| self.gpu(gpu, device, cpu))
            }
            Kind::Nic => {
                let nic = child("nic");
                if nic.is_none() && self.names_nets {
                    return Ok(());
                }
                // Devices that differ in the last digit are ports of one adapter.
                let card = (self.host(), format!("nic {}", busid.get(..busid.len().saturating_sub(1)).unwrap_or(busid)));
                let device = match self.by_busid.get(&card) {
                    Some(&device) => device,
                    None => {
                        let device = self.add(element, Kind::Nic, format!("nic {busid}"), busid)?;
                        self.by_busid.insert(card, device);
                        self.link(parent, device, speed);
                        device
                    }
                };
                match nic {
                    Some(nic) => self.nets(nic, device, speed),
                    None => {
                        self.implied_net(device, speed);
                        Ok(())
                    }
                }
            }
            // NCCL makes NVSwitches and bridges of the links that lead to them.
            Kind::NvSwitch | Kind::Cpu => Ok(()),
            Kind::Switch => {
                let device = self.add(element, kind, format!("pci {busid}"), busid)?;
                self.link(parent, device, speed);
                self.inside(element, device, cpu)
            }
        }
    }

    /// The ports of an adapter with an own link of `upwards` GB/s.
    fn nets(&mut self, nic: Element<'a, 'a>, device: usize, upwards: f64) -> Result<(), FormatError> {
        let nets = || nic.children().filter(|child| child.has_tag_name("net"));
        for net in nets().filter(|net| !self.names_nets || net.attribute("dev").is_some()) {
            let number = net.attribute("dev").map_or_else(|| self.topology.nets.len().to_string(), str::to_owned);
            let name = net.attribute("name").map_or_else(|| format!("net{number}"), str::to_owned);
            let has_rate = self.names_nets || net.attribute("speed").is_some();
            let speed = if net.attribute("speed").is_some() { self.number(net, "speed")? } else { 0.0 };
            let mbit = if speed > 0.0 { speed } else { 10_000.0 };
            let gbyte_per_second = if has_rate { mbit / 8000.0 } else { upwards };
            self.topology.nets.push(Net { name, nic: device, gbyte_per_second, has_rate });
        }
        if !self.names_nets && nets().next().is_none() {
            self.implied_net(device, upwards);
        }
        Ok(())
    }

    /// Adds the port of an adapter without a `<net>`.
    fn implied_net(&mut self, nic: usize, upwards: f64) {
        let name = format!("net{}", self.topology.nets.len());
        self.topology.nets.push(Net { name, nic, gbyte_per_second: upwards, has_rate: false });
    }

    fn note_template(&mut self) {
        let gpus = self.topology.devices.iter().filter(|device| device.kind == Kind::Gpu).count();
        if !self.names_gpus && gpus > 0 {
            let note = format!(
                "the {gpus} GPUs are known by their PCI class: NCCL finds their numbers and NVLinks on the machine, here they have none"
            );
            self.topology.notes.push(note);
        }
        let nets = self.topology.nets.iter().filter(|net| !net.has_rate).count();
        if nets > 0 {
            self.topology.notes.push(format!("the file gives no rate for {nets} ports of adapters"));
        }
    }

    /// The lines of a GPU.
    fn gpu(&mut self, element: Element<'a, 'a>, gpu: usize, cpu: usize) -> Result<(), FormatError> {
        for line in element.children().filter(Element::is_element) {
            let (gbyte_per_second, to) = match line.tag_name().name() {
                "nvlink" => (self.count(line)? * nvlink_gbyte_per_second(self.number(element, "sm")?), ends_at(line)),
                "xgmi" => (self.count(line)? * xgmi_gbyte_per_second(self.xml.needed(element, "gcn")?), ends_at(line)),
                "c2c" => (self.count(line)? * self.number(line, "bw")? / 1000.0, To::Cpu),
                _ => continue,
            };
            if gbyte_per_second <= 0.0 {
                return Err(self.xml.error(line, format!("carries {gbyte_per_second} GB/s; it must be more than 0")));
            }
            self.direct.push(Direct { gpu, cpu, gbyte_per_second, to });
        }
        Ok(())
    }

    /// Links of GPUs are written at each of their ends.
    fn join_gpus(&mut self) {
        let mut pairs: BTreeMap<(usize, usize), [f64; 2]> = BTreeMap::new();
        let (mut nvswitch, mut missing, mut own) = (None, 0, 0);
        for Direct { gpu, cpu, gbyte_per_second, to } in std::mem::take(&mut self.direct) {
            let to = match to {
                To::Cpu => {
                    self.link(cpu, gpu, gbyte_per_second);
                    continue;
                }
                To::NvSwitch => {
                    let device = *nvswitch.get_or_insert_with(|| {
                        let (name, busid) = ("nvswitch".to_owned(), String::new());
                        self.topology.devices.push(Device { kind: Kind::NvSwitch, name, busid, host: 0 });
                        self.topology.devices.len() - 1
                    });
                    self.link(gpu, device, gbyte_per_second);
                    continue;
                }
                To::Gpu(target) => match self.by_busid.get(&(self.topology.devices[gpu].host, address(target))) {
                    Some(&to) if to == gpu => {
                        own += 1;
                        continue;
                    }
                    Some(&to) => to,
                    None => {
                        missing += 1;
                        continue;
                    }
                },
            };
            pairs.entry((gpu.min(to), gpu.max(to))).or_default()[usize::from(gpu > to)] += gbyte_per_second;
        }
        let mut unequal = 0;
        for ((one, other), [there, back]) in pairs {
            unequal += u32::from((there - back).abs() > 1e-9);
            // What both ends say; where one says nothing, what the other says.
            let rate = if there > 0.0 && back > 0.0 { there.min(back) } else { there.max(back) };
            self.link(one, other, rate);
        }
        if own > 0 {
            self.topology.notes.push(format!("{own} links lead from a GPU to itself, and are left out"));
        }
        if missing > 0 {
            self.topology.notes.push(format!("{missing} links lead to GPUs that are not in the file, and are left out"));
        }
        if unequal > 0 {
            self.topology.notes.push(format!("{unequal} links between GPUs are not the same at both ends: the slower one counts"));
        }
    }

    /// Every two CPUs of a machine are joined.
    fn join_cpus(&mut self) {
        let cpus = std::mem::take(&mut self.cpus);
        for (place, &(one, rate)) in cpus.iter().enumerate() {
            let host = |cpu: usize| self.topology.devices[cpu].host;
            let others: Vec<usize> = cpus[place + 1..].iter().map(|(other, _)| *other).filter(|&other| host(other) == host(one)).collect();
            others.into_iter().for_each(|other| self.link(one, other, rate));
        }
    }
}

/// An address on the PCI bus, however its letters are written.
fn address(busid: &str) -> String {
    busid.trim().to_ascii_lowercase()
}

/// What a PCI device is, by the beginning of its class; any other is a switch.
fn kind_of(class: &str) -> Kind {
    let class = class.to_ascii_lowercase();
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| class.starts_with(prefix));
    match () {
        () if begins(&["0x03", "0x120000"]) => Kind::Gpu,
        () if begins(&["0x02"]) => Kind::Nic,
        () if begins(&["0x068000"]) => Kind::NvSwitch,
        () if begins(&["0x068001"]) => Kind::Cpu,
        () => Kind::Switch,
    }
}

/// Where a line of a GPU ends, by its class.
fn ends_at<'a>(line: Element<'a, 'a>) -> To<'a> {
    let (target, class) = (line.attribute("target").unwrap_or_default(), line.attribute("tclass").unwrap_or_default().to_ascii_lowercase());
    match (target, class.as_str()) {
        (_, class) if class.starts_with("0x068000") => To::NvSwitch,
        ("", _) => To::Cpu,
        (_, class) if class.starts_with("0x068001") => To::Cpu,
        (target, _) => To::Gpu(target),
    }
}

/// GB/s of a PCI link: lanes times 100 Mbit/s of each, over 80. `None` if the width is no number.
fn pci_gbyte_per_second(speed: &str, width: Option<&str>) -> Option<f64> {
    let rates = [("2.5", 15.0), ("5", 30.0), ("5.0", 30.0), ("8", 60.0), ("8.0", 60.0), ("16", 120.0), ("16.0", 120.0)];
    let faster = [("32", 240.0), ("32.0", 240.0), ("64", 480.0), ("64.0", 480.0)];
    let word = speed.split_whitespace().next().unwrap_or_default();
    let rate = rates.iter().chain(&faster).find(|(name, _)| *name == word).map_or(60.0, |(_, rate)| *rate);
    let lanes = match width.unwrap_or("0").trim() {
        "" => 0,
        width => width.parse::<u32>().ok().filter(|&lanes| lanes <= 64)?,
    };
    Some(f64::from(if lanes == 0 { 16 } else { lanes }) * rate / 80.0)
}

/// GB/s of an NVLink, by the generation of the GPU.
fn nvlink_gbyte_per_second(sm: f64) -> f64 {
    match sm as u32 {
        100.. => 40.1,
        90.. => 20.6,
        86 => 12.0,
        70.. => 20.0,
        60.. => 18.0,
        _ => 20.0,
    }
}

/// GB/s of an XGMI link, by the generation of the GPU.
fn xgmi_gbyte_per_second(gcn: &str) -> f64 {
    match gcn.trim().trim_start_matches("gfx") {
        "90a" | "910" => 36.0,
        gcn if gcn.len() == 3 && gcn.starts_with("94") => 48.0,
        _ => 24.0,
    }
}

/// GB/s between two CPUs of this kind.
fn between_cpus(cpu: Element<'_, '_>) -> f64 {
    let text = |key: &str| cpu.attribute(key).unwrap_or_default().trim();
    let number = |key: &str| text(key).parse::<u32>().unwrap_or(0);
    match (text("arch"), text("vendor")) {
        ("ppc64", _) => 32.0,
        ("arm64" | "aarch64", _) => 6.0,
        (_, "AuthenticAMD") => 16.0,
        (_, "GenuineIntel") if number("familyid") == 6 && number("modelid") >= 0x55 => 10.0,
        (_, "Shanghai" | "CentaurHauls") if number("familyid") == 7 && number("modelid") == 0x5b => 9.0,
        _ => 6.0,
    }
}

#[cfg(test)]
mod tests;
