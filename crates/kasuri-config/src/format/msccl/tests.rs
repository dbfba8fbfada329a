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
    assert!(broken(copy, "type=\"cpy\" srcbuf=\"s\" srcoff=\"1\" dstbuf=\"i\" dstoff=\"1\"").contains("s[1] of gpu 0 does not exist"));
    assert!(broken("depid=\"0\" deps=\"2\"", "depid=\"-1\" deps=\"-1\"").contains("reads s[0] of gpu 0, in which nothing has been put"));
    assert!(broken("depid=\"0\" deps=\"2\"", "depid=\"0\" deps=\"3\"").contains("waits for step 3 of tb 0, which does not exist"));
    assert!(
        broken("depid=\"0\" deps=\"2\"", "depid=\"1\" deps=\"0\"")
            .contains("deadlock: 6 of 7 steps done, gpu 0 tb 1 step 0 waits for step 0 of tb 1")
    );
    assert!(broken("send=\"0\" recv=\"0\" chan=\"0\"", "send=\"0\" recv=\"0\" chan=\"1\"").contains("never received"));
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
    assert!(error("</algo>", "").contains("is no XML"));
    assert!(error("proto=\"LL\"", "proto=\"LL9\"").starts_with("a.xml:2: proto is `LL9`"));
    assert!(error("type=\"rrcs\"", "type=\"add\"").starts_with("a.xml:6: type is `add`"));
    assert!(error("srcbuf=\"i\"", "srcbuf=\"x\"").starts_with("a.xml:5: srcbuf is `x`"));
    assert!(error("<gpu id=\"1\"", "<gpu id=\"2\"").contains("id of <gpu> is 2"));
    assert!(error("ngpus=\"2\"", "ngpus=\"3\"").contains("there are 2 <gpu>"));
    assert!(error("send=\"1\" recv=\"1\"", "send=\"-1\" recv=\"1\"").contains("needs a peer"));
    assert!(error(" cnt=\"1\"", "").contains("has no attribute `cnt`"));
    assert!(error("<tb id=\"1\"", "<block/><tb id=\"1\"").contains("<block> stands in <gpu>"));
}
