use super::*;

/// Two CPUs; a switch with two GPUs that are joined four times, and an adapter of two ports; a third GPU and an adapter on the chip.
const NODE: &str = r#"<!-- a node -->
<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:10:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:11:00.0" class="0x030200" link_speed="8 GT/s" link_width="16">
        <gpu dev="0" sm="80" rank="0" gdr="1">
          <nvlink target="0000:12:00.0" count="4" tclass="0x030200"/>
          <nvlink target="0000:99:00.0" count="2" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:12:00.0" class="0x030200" link_speed="32 GT/s" link_width="0">
        <gpu dev="1" sm="80" rank="1" gdr="1">
          <nvlink target="0000:11:00.0" count="4" tclass="0x030200"/>
          <nvlink target="0000:98:00.0" count="3" tclass="0x068000"/>
          <nvlink target="0000:77:00.0" count="1" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:13:00.0" class="0x020000" link_speed="64 GT/s" link_width="8">
        <nic><net name="mlx5_0" dev="0" speed="400000" port="1" guid="0x1"/></nic>
      </pci>
      <pci busid="0000:13:00.1" class="0x020000" link_speed="64 GT/s" link_width="8">
        <nic><net name="mlx5_1" dev="1" speed="-1" port="1" guid="0x1"/><net name="hidden" speed="1"/></nic>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" arch="x86_64" vendor="AuthenticAMD" familyid="1" modelid="1">
    <pci busid="0000:21:00.0" class="0x120000" link_speed="2.5 GT/s" link_width="4">
      <gpu dev="2" sm="90" gcn="gfx942" rank="2"><c2c count="2" bw="4500"/></gpu>
    </pci>
    <pci busid="0000:22:00.0" class="0x030000" link_speed="2.5 GT/s" link_width="4"><gpu dev="3" sm="90"/></pci>
    <nic><net name="eth0" dev="2" speed="1000"/></nic>
  </cpu>
</system>
"#;

fn rate(topology: &Topology, one: &str, other: &str) -> Vec<f64> {
    let named = |place: usize| topology.devices[place].name.as_str();
    let joins = |link: &&Joined| [link.ends.map(named), [named(link.ends[1]), named(link.ends[0])]].contains(&[one, other]);
    topology.links.iter().filter(joins).map(|link| link.gbyte_per_second).collect()
}

#[test]
fn bandwidths_are_those_that_nccl_derives() {
    let found = parse("t.xml", NODE.as_bytes()).unwrap();
    let names: Vec<&str> = found.devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["cpu0", "pci 0000:10:00.0", "gpu0", "gpu1", "nic 0000:13:00.0", "cpu1", "gpu2", "nic at cpu1", "nvswitch"]);
    for (one, other, rates) in [
        ("cpu0", "pci 0000:10:00.0", vec![24.0]),
        ("pci 0000:10:00.0", "gpu0", vec![12.0]),
        ("pci 0000:10:00.0", "gpu1", vec![48.0]),
        ("pci 0000:10:00.0", "nic 0000:13:00.0", vec![48.0]),
        ("gpu0", "gpu1", vec![80.0]),
        ("gpu0", "nvswitch", vec![40.0]),
        ("gpu1", "nvswitch", vec![60.0]),
        ("cpu1", "gpu2", vec![0.75, 9.0]),
        ("cpu0", "cpu1", vec![10.0]),
        ("cpu1", "nic at cpu1", vec![5000.0]),
    ] {
        assert_eq!(rate(&found, one, other), rates, "{one} {other}");
    }
    let nets: Vec<(&str, f64)> = found.nets.iter().map(|net| (net.name.as_str(), net.gbyte_per_second)).collect();
    assert_eq!(nets, [("mlx5_0", 50.0), ("mlx5_1", 1.25), ("eth0", 0.125)]);
    assert_eq!(found.notes, ["1 links lead to GPUs that are not in the file, and are left out"]);
    let faster = NODE.replacen("count=\"4\"", "count=\"6\"", 1);
    let found = parse("t.xml", faster.as_bytes()).unwrap();
    assert_eq!((rate(&found, "gpu0", "gpu1"), found.notes.len()), (vec![80.0], 2));
}

/// What clouds ship for NCCL_TOPO_FILE names GPUs (0x0302) and adapters (0x0207) by their PCI class; NCCL fills in the rest.
#[test]
fn templates_name_gpus_and_adapters_by_their_class() {
    let text = r#"<system version="1">
      <cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">
        <pci busid="ffff:ff:01.0" class="0x060400" link_speed="16 GT/s" link_width="16">
          <pci busid="0001:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>
          <pci busid="0002:00:00.0" class="0x030200" link_speed="8 GT/s" link_width="16"><gpu sm="80"/></pci>
          <pci busid="0101:00:00.0" class="0x020700" link_speed="16 GT/s" link_width="16"/>
          <pci busid="0102:00:00.0" class="0x020700" link_speed="16 GT/s" link_width="8"><nic><net name="mlx5_1" speed="200000"/></nic></pci>
          <pci busid="0200:00:00.0" class="0x068000" link_speed="16 GT/s" link_width="2"/>
        </pci>
      </cpu>
    </system>"#;
    let found = parse("t.xml", text.as_bytes()).unwrap();
    let names: Vec<&str> = found.devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["cpu0", "pci ffff:ff:01.0", "gpu0", "gpu1", "nic 0101:00:00.0", "nic 0102:00:00.0"]);
    // 16 lanes of 16 GT/s are 24 GB/s.
    let nets: Vec<(&str, f64, bool)> = found.nets.iter().map(|net| (net.name.as_str(), net.gbyte_per_second, net.has_rate)).collect();
    assert_eq!(nets, [("net0", 24.0, false), ("mlx5_1", 25.0, true)]);
    assert!(found.notes[0].starts_with("the 2 GPUs are known by their PCI class"), "{:?}", found.notes);
    assert_eq!(found.notes[1], "the file gives no rate for 1 ports of adapters");
    // A file with the rank of a GPU is not a template: GPUs without one are left out.
    let named = text.replace("<gpu sm=\"80\"/>", "<gpu sm=\"80\" dev=\"3\" rank=\"0\"/>");
    let found = parse("t.xml", named.as_bytes()).unwrap();
    let gpus: Vec<&str> = found.devices.iter().filter(|device| device.kind == Kind::Gpu).map(|device| device.name.as_str()).collect();
    assert_eq!(gpus, ["gpu3"]);
}

#[test]
fn links_to_oneself_are_left_out_and_machines_are_kept_apart() {
    let own = NODE.replacen("target=\"0000:12:00.0\"", "target=\"0000:11:00.0\"", 1);
    let found = parse("t.xml", own.as_bytes()).unwrap();
    assert_eq!(found.notes[0], "1 links lead from a GPU to itself, and are left out");
    assert_eq!((rate(&found, "gpu0", "gpu0"), rate(&found, "gpu0", "gpu1")), (vec![], vec![80.0]));
    let two =
        NODE.replacen("numaid=\"0\"", "numaid=\"0\" host_hash=\"0x1\"", 1).replacen("numaid=\"1\"", "numaid=\"0\" host_hash=\"0x2\"", 1);
    let found = parse("t.xml", two.as_bytes()).unwrap();
    let hosts: Vec<u32> = found.devices.iter().map(|device| device.host).collect();
    assert_eq!((found.hosts, hosts), (2, vec![0, 0, 0, 0, 0, 1, 1, 1, 0]));
    assert_eq!(found.links.iter().filter(|link| link.ends.iter().all(|&end| found.devices[end].kind == Kind::Cpu)).count(), 0);
    // A net without a speed has 10 Gbit/s.
    let slow = parse("t.xml", NODE.replacen("speed=\"400000\" ", "", 1).as_bytes()).unwrap();
    assert!((slow.nets[0].gbyte_per_second - 1.25).abs() < 1e-12);
    // NVIDIA/nccl, `topo.h`: SM100_NVLINK_BW 40.1 GB/s.
    let blackwell = parse("t.xml", NODE.replace("sm=\"80\"", "sm=\"100\"").as_bytes()).unwrap();
    assert_eq!(rate(&blackwell, "gpu0", "gpu1"), [4.0 * 40.1]);
}

#[test]
fn what_is_wrong_is_shown_with_its_line() {
    for (old, new, expected) in [
        ("version=\"1\"", "version=\"3\"", "t.xml:2: version is `3`; versions 1 and 2 are read"),
        ("numaid=\"0\" ", "", "t.xml:3: <cpu> has no attribute `numaid`"),
        ("count=\"4\"", "count=\"four\"", "t.xml:7: count is `four`; it must be a number"),
        ("count=\"4\"", "count=\"0\"", "t.xml:7: count is `0`; it must be 1 or more"),
        ("link_width=\"16\"", "link_width=\"x16\"", "t.xml:4: link_width is `x16`; it must be a whole number of lanes"),
        ("0000:12:00.0\" class", "0000:11:00.0\" class", "t.xml:11: has a second device at 0000:11:00.0"),
        ("busid=\"0000:10:00.0\" ", "", "t.xml:4: <pci> has no attribute `busid`"),
        ("bw=\"4500\"", "bw=\"-1\"", "carries -0.002 GB/s; it must be more than 0"),
        ("</system>", "", "t.xml:"),
    ] {
        let error = parse("t.xml", NODE.replacen(old, new, 1).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{new}: {error}");
    }
    let error = |text: &str| parse("t.xml", text.as_bytes()).unwrap_err().to_string();
    assert!(error("<graphs version=\"1\"/>").contains("a file of NCCL's graphs (NCCL_GRAPH_FILE)"));
    assert!(error("<algo/>").contains("begins with <algo>; a topology of NCCL begins with <system>"));
    assert!(error("<system version=\"1\"/>").contains("has no <cpu>"));
}
