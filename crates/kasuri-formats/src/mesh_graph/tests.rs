use super::*;

const ONE: &str = "# a\nmesh_descriptors {\n  name: \"M0\"\n  arch: WORMHOLE_B0\n  device_topology { dims: [ 8, 4 ], dim_types: [ RING, LINE ] }\n  \
                   host_topology { dims: [ 2, 1 ] }\n  channels { count: 4 policy: RELAXED }\n}\n";

fn graph(body: &str) -> String {
    let instances =
        "  instances { mesh { mesh_descriptor: \"M0\" mesh_id: 0 } }\n  instances { mesh { mesh_descriptor: \"M0\" mesh_id: 3 } }\n";
    format!(
        "{ONE}graph_descriptors {{\n  name: \"G0\"\n  type: \"FABRIC\"\n{instances}{body}}}\ntop_level_instance {{ graph {{ graph_descriptor: \"G0\" graph_id: 0 }} }}\n"
    )
}

fn single() -> String {
    format!("{ONE}top_level_instance {{ mesh {{ mesh_descriptor: \"M0\" mesh_id: 0 }} }}\n")
}

#[test]
fn a_mesh_is_read() {
    let found = parse("m", single().as_bytes()).unwrap();
    let shape = &found.meshes[0].shape;
    assert_eq!((shape.chip, shape.policy, shape.chips()), (Chip::Wormhole, Policy::Relaxed, 32));
    assert_eq!(
        (&shape.dims[..], &shape.rings[..], &shape.links[..], &shape.hosts[..]),
        (&[8, 4][..], &[true, false][..], &[4, 4][..], &[2, 1][..])
    );
    assert!(found.connections.is_empty());
}

#[test]
fn a_graph_joins_meshes() {
    let nodes = "    nodes { mesh { mesh_descriptor: \"M0\" mesh_id: 0 device_id: 7 } }\n    nodes { mesh { mesh_descriptor: \"M0\" mesh_id: 3 } }\n";
    let text = graph(&format!("  connections {{\n{nodes}    channels {{ count: 2 }}\n    assign_z_direction: true\n  }}\n"));
    let found = parse("m", text.as_bytes()).unwrap();
    assert_eq!(found.meshes.iter().map(|mesh| mesh.id).collect::<Vec<_>>(), [0, 3]);
    let connection = &found.connections[0];
    assert_eq!((connection.meshes, connection.chips, connection.links), ([0, 1], [Some(7), None], 2));
    assert_eq!(connection.policy, Policy::Strict);
    for layout in [
        "  graph_topology: { layout_type: ALL_TO_ALL channels { count: 4 policy: RELAXED } }\n",
        "  graph_topology: RING\n  channels { count: 4 policy: RELAXED }\n",
    ] {
        let found = parse("m", graph(layout).as_bytes()).unwrap();
        assert_eq!(found.connections.len(), 1, "{layout}");
        assert_eq!((found.connections[0].links, found.connections[0].policy), (4, Policy::Relaxed), "{layout}");
    }
}

#[test]
fn what_is_wrong_is_shown_with_its_line() {
    for (old, new, expected) in [
        ("arch:", "arhc:", "m:4: unknown field `arhc` of mesh_descriptors; did you mean `arch`?"),
        ("WORMHOLE_B0", "WORMHOLE", "m:4: arch is `WORMHOLE`; it must be WORMHOLE_B0 or BLACKHOLE"),
        ("[ 8, 4 ]", "[ 8, 0 ]", "m:5: dims is `0`; it must be a whole number, 1 to 16384"),
        ("[ 8, 4 ]", "[ 8, 4096 ]", "m:5: dims is [8, 4096]; it must be 1 to 4 numbers, at most 16384 chips"),
        ("[ 8, 4 ]", "[ ]", "m:5: dims is []; it must be"),
        ("RING, LINE", "RING, LINE, LINE", "m:5: has 3 dim_types for 2 dims"),
        ("RING, LINE", "RING, CLOSED", "m:5: dim_types is `CLOSED`; it must be LINE or RING"),
        ("dims: [ 2, 1 ]", "dims: [ 3, 1 ]", "m:2: host_topology [3, 1] does not divide device_topology [8, 4]"),
        ("count: 4", "count: 0", "m:7: count is `0`; it must be a whole number, 1 to 128"),
        ("count: 4", "", "m:7: channels has no `count`"),
        ("RELAXED", "LOOSE", "m:7: policy is `LOOSE`; it must be STRICT or RELAXED"),
        ("mesh_descriptor: \"M0\"", "mesh_descriptor: \"M1\"", "m:9: no mesh is described as `M1`; did you mean `M0`?"),
        ("top_level_instance", "top_instance", "m:9: unknown field `top_instance` of a mesh graph descriptor"),
        ("\ntop_level_instance { mesh { mesh_descriptor: \"M0\" mesh_id: 0 } }", "", "m:1: has no `top_level_instance`"),
    ] {
        let error = parse("m", single().replacen(old, new, 1).as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{new}: {error}");
    }
    for (body, expected) in [
        (
            "  connections { nodes { mesh { mesh_descriptor: \"M0\" mesh_id: 0 } } channels { count: 1 } }\n",
            "joins 1 nodes; a connection joins two",
        ),
        ("  instances { mesh { mesh_descriptor: \"M0\" mesh_id: 3 } }\n", "has a second mesh of mesh_id 3"),
        ("  instances { graph { graph_descriptor: \"G1\" graph_id: 3 } }\n", "graphs of meshes are read here, no graphs of graphs"),
        ("  graph_topology: STAR\n channels { count: 1 }\n", "graph_topology is `STAR`; it must be ALL_TO_ALL or RING"),
        (
            "  connections { nodes { mesh { mesh_descriptor: \"M0\" mesh_id: 0 device_id: 32 } } nodes { mesh { mesh_descriptor: \"M0\" mesh_id: 3 } } \
             channels { count: 1 } }\n",
            "names chip 32 of mesh 0, which has 32 chips",
        ),
        (
            "  connections { nodes { mesh { mesh_descriptor: \"M0\" mesh_id: 0 } } nodes { mesh { mesh_descriptor: \"M0\" mesh_id: 0 } } \
             channels { count: 1 } }\n",
            "joins mesh 0 to itself",
        ),
        (
            "  connections { nodes { mesh { mesh_descriptor: \"M0\" mesh_id: 0 } } nodes { mesh { mesh_descriptor: \"M0\" mesh_id: 5 } } \
             channels { count: 1 } }\n",
            "joins unknown mesh instance 5",
        ),
    ] {
        let error = parse("m", graph(body).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{body}: {error}");
    }
}

const OLD: &str = "ChipSpec: {\n  arch: wormhole_b0,\n  ethernet_ports: { N: 3, E: 4, S: 3, W: 4 }\n}\nBoard: [\n  { name: Galaxy, type: Mesh, topology: [8, 4] }\n]\n\
                   Mesh: [\n{ id: 0, board: Galaxy, topology: [1, 2], host_ranks: [[0, 1]] }\n]\nGraph: [\n]\n";

#[test]
fn the_older_form_is_read() {
    let found = parse_yaml("y", OLD.as_bytes()).unwrap();
    let shape = &found.meshes[0].shape;
    assert_eq!((&shape.dims[..], &shape.links[..], &shape.hosts[..]), (&[8, 8][..], &[3, 4][..], &[1, 2][..]));
    for (old, new, expected) in [
        ("wormhole_b0", "grayskull", "y:2: arch is `grayskull`; it must be wormhole_b0 or blackhole"),
        ("S: 3", "S: 2", "has 3 links N and 2 links S; each link has two ends"),
        ("board: Galaxy", "board: Galaxie", "y:9: no board is described as `Galaxie`"),
        ("type: Mesh", "type: Star", "type is `Star`; it must be Mesh or TORUS_2D"),
        ("[1, 2]", "[1]", "topology has 1 numbers; it must have 2: rows, columns"),
        ("[[0, 1]]", "[[0, 1, 2]]", "host_ranks of 1 x 3 do not divide the chips [8, 8]"),
        ("Graph: [", "Graph: [ [0, 1]", "joins meshes; of these the descriptor in text of Protocol Buffers"),
        ("Board:", "Bord:", "unknown key `Bord` of the file; did you mean `Board`?"),
    ] {
        let error = parse_yaml("y", OLD.replacen(old, new, 1).as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("y:") && error.contains(expected), "{new}: {error}");
    }
}
