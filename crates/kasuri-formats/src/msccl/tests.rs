//! Tests on algorithms of a few steps, each broken in one place.

use super::*;

/// Two GPUs add up: each sends its half of the other's result, adds what it receives, and sends the sum.
const ALL_REDUCE: &str = r#"<!-- two GPUs -->
<algo name="pair" proto="LL" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="1">
  <gpu id="0" i_chunks="2" o_chunks="0" s_chunks="1">
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="rrcs" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="2" type="r" srcbuf="i" srcoff="1" dstbuf="s" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
    </tb>
    <tb id="1" send="-1" recv="-1" chan="0">
      <step s="0" type="cpy" srcbuf="s" srcoff="0" dstbuf="i" dstoff="1" cnt="1" depid="0" deps="2" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="2" o_chunks="0" s_chunks="0">
    <tb id="0" send="0" recv="0" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="rrcs" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="2" type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>
"#;

fn verdict(text: &str) -> Result<Checked, String> {
    check(&parse("a.xml", text.as_bytes()).map_err(|error| error.to_string())?)
}

#[test]
fn a_correct_algorithm_is_proved_and_written_again() {
    let checked = verdict(ALL_REDUCE).unwrap();
    assert_eq!((checked.blocks, checked.steps, checked.sends, checked.chunks_sent, checked.slots), (3, 7, 4, 4, 2));
    let algorithm = parse("a.xml", ALL_REDUCE.as_bytes()).unwrap();
    let text = write(&algorithm);
    assert!(text.contains("outofplace=\"0\" minBytes=\"0\" maxBytes=\"0\""), "{text}");
    assert_eq!(parse("again.xml", text.as_bytes()).unwrap(), algorithm);
    let odd = Algorithm { name: "a \"b\" & <c>\n".to_owned(), ..algorithm };
    assert_eq!(parse("again.xml", write(&odd).as_bytes()).unwrap(), odd);
}

/// Each change breaks one thing; the message names it.
#[test]
fn every_kind_of_damage_is_named() {
    let broken = |from: &str, to: &str| {
        assert!(ALL_REDUCE.contains(from), "{from}");
        verdict(&ALL_REDUCE.replacen(from, to, 1)).unwrap_err()
    };
    let copy = "type=\"cpy\" srcbuf=\"s\" srcoff=\"0\" dstbuf=\"i\" dstoff=\"1\"";
    assert_eq!(
        broken(copy, "type=\"nop\" srcbuf=\"s\" srcoff=\"0\" dstbuf=\"i\" dstoff=\"1\""),
        "gpu 0 output 1 is wrong: input 1 of gpu 1 is missing"
    );
    assert_eq!(
        broken(copy, "type=\"re\" srcbuf=\"s\" srcoff=\"0\" dstbuf=\"i\" dstoff=\"1\""),
        "gpu 0 output 1 is wrong: input 1 of gpu 0 is in it 2 times"
    );
    assert!(
        broken(copy, "type=\"cpy\" srcbuf=\"s\" srcoff=\"1\" dstbuf=\"i\" dstoff=\"1\"").contains("s[1] does not exist, s_chunks is 1")
    );
    assert!(broken("depid=\"0\" deps=\"2\"", "depid=\"-1\" deps=\"-1\"").contains("reads s[0] of gpu 0, in which nothing has been put"));
    assert!(broken("depid=\"0\" deps=\"2\"", "depid=\"0\" deps=\"3\"").contains("waits for step 3 of tb 0, which does not exist"));
    let itself = "depid=\"0\" deps=\"2\" hasdep=\"0\"";
    assert!(
        broken(itself, "depid=\"1\" deps=\"0\" hasdep=\"1\"")
            .contains("deadlock: 6 of 7 steps done, gpu 0 tb 1 step 0 waits for step 0 of tb 1")
    );
    let elsewhere = ALL_REDUCE.replacen("send=\"0\" recv=\"0\" chan=\"0\"", "send=\"0\" recv=\"0\" chan=\"1\"", 1);
    assert!(verdict(&elsewhere.replacen("nchannels=\"1\"", "nchannels=\"2\"", 1)).unwrap_err().contains("never received"));
    assert!(
        broken("send=\"-1\" recv=\"-1\"", "send=\"-1\" recv=\"1\"")
            .contains("two threadblocks at one end: tb 0 and 1 of gpu 0 both receive")
    );
    assert!(
        broken(
            "dstoff=\"0\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n      <step s=\"2\"",
            "dstoff=\"0\" cnt=\"2\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n      <step s=\"2\""
        )
        .contains("receives 1 chunks, expects 2")
    );
    assert!(broken("coll=\"allreduce\"", "coll=\"gather\"").contains("not known here"));
}

/// Two copies into one chunk, whose order nothing says: the result may be right, but only by chance.
#[test]
fn a_result_that_depends_on_the_order_is_refused() {
    let second = "<tb id=\"2\" send=\"-1\" recv=\"-1\" chan=\"0\">\n      <step s=\"0\" type=\"cpy\" srcbuf=\"s\" srcoff=\"0\" dstbuf=\"i\" \
                  dstoff=\"1\" cnt=\"1\" depid=\"0\" deps=\"2\" hasdep=\"0\"/>\n    </tb>\n  </gpu>\n  <gpu id=\"1\"";
    let text = ALL_REDUCE.replacen("</gpu>\n  <gpu id=\"1\"", second, 1);
    assert!(verdict(&text).unwrap_err().contains("nothing says which comes first"));
}

#[test]
fn what_is_no_algorithm_is_refused_with_its_line() {
    let error = |from: &str, to: &str| parse("a.xml", ALL_REDUCE.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
    assert!(error("</algo>", "").contains("invalid XML"));
    assert!(error("proto=\"LL\"", "proto=\"LL9\"").starts_with("a.xml:2: proto is `LL9`"));
    assert!(error("type=\"rrcs\"", "type=\"add\"").starts_with("a.xml:6: type is `add`"));
    assert!(error("srcbuf=\"i\"", "srcbuf=\"x\"").starts_with("a.xml:5: srcbuf is `x`"));
    assert!(error("<gpu id=\"1\"", "<gpu id=\"2\"").contains("id of <gpu> is 2"));
    assert!(error("ngpus=\"2\"", "ngpus=\"3\"").contains("there are 2 <gpu>"));
    assert!(error("send=\"1\" recv=\"1\"", "send=\"-1\" recv=\"1\"").contains("needs a peer"));
    assert!(error(" cnt=\"1\"", "").contains("has no attribute `cnt`"));
    assert!(error("s=\"0\" type=\"s\"", "s=\"1\" type=\"s\"").contains("this is step 0"));
    assert!(error("ngpus=\"2\"", "ngpus=\"2\" nthreads=\"100\"").contains("nthreads is 100; it must be a multiple of 32"));
}

/// MSCCL's loader skips elements that it does not know; so does the reader, with a note. A step needs no offset in a buffer that it does
/// not use.
#[test]
fn elements_that_the_loader_skips_are_skipped() {
    let known = parse("a.xml", ALL_REDUCE.as_bytes()).unwrap();
    let text = ALL_REDUCE.replace("<tb id=\"0\"", "<copy i_off=\"0\"/>\n<tb id=\"0\"").replacen("</tb>", "<hint/></tb>", 1);
    let text = text.replacen("srcoff=\"1\" dstbuf=\"i\" dstoff=\"1\"", "srcoff=\"1\" dstbuf=\"i\" dstoff=\"-1\"", 1);
    let found = parse("a.xml", text.as_bytes()).unwrap();
    let ends = ["2 elements <copy> in <gpu> skipped, as by MSCCL's loader", "1 element <hint> in <tb> skipped, as by MSCCL's loader"];
    assert!(found.notes.iter().zip(ends).all(|(note, end)| note.ends_with(end)) && found.notes.len() == 2, "{:?}", found.notes);
    assert!(found.notes[0].starts_with("a.xml:4: "), "{:?}", found.notes);
    let mut gpus = found.gpus;
    gpus[0].blocks[0].steps[0].destination.offset = 1;
    assert_eq!(gpus, known.gpus);
    assert!(
        parse("a.xml", ALL_REDUCE.replacen("srcoff=\"1\"", "srcoff=\"-1\"", 1).as_bytes())
            .unwrap_err()
            .to_string()
            .contains("srcoff is `-1`")
    );
}

/// What microsoft/msccl's loader (topo.cc) refuses and where its interpreter would wait forever (msccl_interpreter.h), each by one change
/// to an algorithm that is right.
#[test]
fn what_msccl_does_not_run_is_refused() {
    let changed = |from: &str, to: &str| {
        assert!(ALL_REDUCE.contains(from), "{from}");
        verdict(&ALL_REDUCE.replacen(from, to, 1))
    };
    let signalling = "dstbuf=\"s\" dstoff=\"0\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"1\"/>";
    let silent = signalling.replace("hasdep=\"1\"", "hasdep=\"0\"");
    let copy = "type=\"cpy\" srcbuf=\"s\" srcoff=\"0\" dstbuf=\"i\" dstoff=\"1\" cnt=\"1\" depid=\"0\" deps=\"2\" hasdep=\"0\"/>";
    let plain = copy.replace("depid=\"0\" deps=\"2\"", "depid=\"-1\" deps=\"-1\"");
    let nop = "type=\"nop\" srcbuf=\"i\" srcoff=\"-1\" dstbuf=\"o\" dstoff=\"-1\" cnt=\"0\" depid=\"0\" deps=\"2\" hasdep=\"0\"/>";
    let chain = format!("{nop}\n<step s=\"1\" {plain}");
    let many_steps: String = (0..256).map(|s| format!("<step s=\"{}\" {nop}", s + 1)).collect();
    let cases = [
        (signalling, silent.clone(), "gpu 0 tb 1 step 0 waits for step 2 of tb 0, which never signals its end: hasdep must be 1"),
        ("send=\"1\" recv=\"1\"", "send=\"1\" recv=\"0\"".into(), "gpu 0 tb 0 has the GPU 0 itself as its peer"),
        ("send=\"-1\" recv=\"-1\" chan=\"0\"", "send=\"-1\" recv=\"-1\" chan=\"1\"".into(), "gpu 0 tb 1: chan is 1; with nchannels = 1"),
        ("nchannels=\"1\"", "nchannels=\"0\"".into(), "chan is 0; with nchannels = 0"),
        ("nchannels=\"1\"", "nchannels=\"129\"".into(), "nchannels is 129; MSCCL has at most 128"),
        ("inplace=\"1\"", "inplace=\"1\" minBytes=\"9\" maxBytes=\"8\"".into(), "minBytes is 9, above maxBytes = 8"),
        ("i_chunks=\"2\"", "i_chunks=\"3\"".into(), "gpu 0: i_chunks is 3; with allreduce and nchunksperloop = 2 it must be 2"),
        ("i_chunks=\"2\"", "i_chunks=\"0\"".into(), "gpu 0 tb 0 step 0: i[1] does not exist, i_chunks is 0"),
        ("cnt=\"1\"", "cnt=\"72\"".into(), "gpu 0 tb 0 step 0: cnt is 72; MSCCL takes at most 71"),
        (copy, chain, "gpu 0 tb 1 step 1: steps `nop` that wait come before it, and depid is -1"),
        (copy, format!("{copy}{many_steps}"), "gpu 0 tb 1 has 257 steps; MSCCL runs at most 256"),
    ];
    for (from, to, expected) in &cases {
        let problem = changed(from, to).unwrap_err();
        assert!(problem.starts_with(expected) || problem.contains(expected), "{problem}\n{expected}");
    }
    // A later step that signals is enough: its flag is above the awaited number.
    let later =
        format!("{silent}\n      <step s=\"3\" {}", plain.replace("dstoff=\"1\"", "dstoff=\"1\"").replace("hasdep=\"0\"", "hasdep=\"1\""));
    let without = ALL_REDUCE.replacen(signalling, &later, 1).replacen(
        "type=\"cpy\" srcbuf=\"s\" srcoff=\"0\" dstbuf=\"i\" dstoff=\"1\" cnt=\"1\" depid=\"0\"",
        "type=\"nop\" srcbuf=\"s\" srcoff=\"0\" dstbuf=\"i\" dstoff=\"1\" cnt=\"1\" depid=\"0\"",
        1,
    );
    assert_eq!(verdict(&without).map(|checked| checked.steps), Ok(8));
}

/// A broadcast that copies within scratch before it sends: where both places overlap in part MSCCL's threads may read what others have written.
/// Apart from each other or the very same they are defined.
#[test]
fn copies_onto_themselves_are_undefined() {
    let broadcast = |kind: &str, from: &str, to: &str, count: u32| {
        let step = |s: u32, kind: &str, source: &str, destination: &str| {
            let [source, destination] = [source, destination].map(|place| place.split_at(1));
            format!(
                "<step s=\"{s}\" type=\"{kind}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" cnt=\"{count}\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>",
                source.0, source.1, destination.0, destination.1
            )
        };
        let steps = [step(0, "cpy", "i0", from), step(1, kind, from, to), step(2, "s", to, "i0")].concat();
        verdict(&format!(
            "<algo name=\"x\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"{count}\" ngpus=\"2\" coll=\"broadcast\" inplace=\"1\">\
             <gpu id=\"0\" i_chunks=\"{count}\" o_chunks=\"0\" s_chunks=\"9\"><tb id=\"0\" send=\"1\" recv=\"-1\" chan=\"0\">{steps}</tb></gpu>\
             <gpu id=\"1\" i_chunks=\"{count}\" o_chunks=\"0\" s_chunks=\"0\"><tb id=\"0\" send=\"-1\" recv=\"0\" chan=\"0\">{}</tb></gpu></algo>",
            step(0, "r", "i0", "i0")
        ))
    };
    for (from, to, count, is_defined) in [
        ("s1", "s0", 4, false),
        ("s0", "s1", 4, false),
        ("s0", "s3", 4, false),
        ("s0", "s4", 4, true),
        ("s2", "s2", 4, true),
        ("s0", "s1", 1, true),
    ] {
        match broadcast("cpy", from, to, count) {
            Ok(_) => assert!(is_defined, "{from} {to} {count}"),
            Err(problem) => assert!(!is_defined && problem.contains("overlap"), "{from} {to} {count}: {problem}"),
        }
    }
    assert!(broadcast("re", "s1", "s2", 2).unwrap_err().contains("overlap"));
}

/// Steps that only add up: what each holds grows without end, and the check ends at its bound, and long before at the loader's.
#[test]
fn work_without_end_is_refused_at_once() {
    let begun = std::time::Instant::now();
    let step = |s: u32, to: u32| {
        format!(
            "<step s=\"{s}\" type=\"re\" srcbuf=\"s\" srcoff=\"{}\" dstbuf=\"s\" dstoff=\"{to}\" cnt=\"COUNT\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>",
            1 << 19
        )
    };
    let steps: String = (0..200).map(|s| step(s, s)).collect();
    let text = format!(
        "<algo name=\"x\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"1048576\" ngpus=\"1\" coll=\"broadcast\" inplace=\"1\">\
         <gpu id=\"0\" i_chunks=\"1048576\" o_chunks=\"0\" s_chunks=\"1048576\"><tb id=\"0\" send=\"-1\" recv=\"-1\" chan=\"0\">{steps}</tb></gpu></algo>"
    );
    assert!(verdict(&text.replace("COUNT", "500000")).unwrap_err().contains("cnt is 500000; MSCCL takes at most 71"));
    assert!(verdict(&text.replace("COUNT", "71")).unwrap_err().contains("in which nothing has been put"));
    assert!(begun.elapsed().as_secs() < 20);
}

/// A broadcast from one GPU to 40 others has more connections than threadblocks may share a channel: it is written on two. With 300 GPUs it has more
/// threadblocks than a GPU may have, and is refused. Chunks of one message are cut where a step may not have as many.
#[test]
fn what_is_written_keeps_the_rules() {
    use kasuri_workload::collective::{COLLECTIVES, MessageSize, Parameters};
    let written = |operation: &'static str, schedule: &str, ranks: u32| {
        let parameters = Parameters { ranks, root: 0, size: MessageSize::of_flits(10) };
        let entry = COLLECTIVES.iter().find(|entry| entry.collective == operation && entry.schedule == schedule).unwrap();
        compose("x", operation, &*entry.build(&parameters).unwrap(), &parameters)
    };
    let linear = written("broadcast", "linear", 41).unwrap();
    assert_eq!(linear.channels, 2);
    check(&linear).unwrap();
    assert!(written("broadcast", "linear", 300).unwrap_err().contains("has 299 threadblocks; MSCCL runs at most 216"));
    let doubling = written("allgather", "recursive-doubling", 256).unwrap();
    let longest = doubling.gpus.iter().flat_map(|gpu| &gpu.blocks).flat_map(|block| &block.steps).map(|step| step.count).max();
    assert_eq!((doubling.channels, longest), (1, Some(71)));
    assert!(as_run(&doubling).is_ok());
}
