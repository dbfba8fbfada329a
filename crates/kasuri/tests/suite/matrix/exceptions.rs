//! Exceptions of the matrix of features, each with its reason.

/// Keys, part of the message, and the reason.
pub(crate) type Excuse = (&'static [&'static str], &'static str, &'static str);

/// Impossible machines, on any simulator.
pub(crate) const MACHINE: &[Excuse] = &[
    (
        &["router.predictor"],
        "needs architecture = \"input-queued\"",
        "the queue in which a packet waits names its output: nothing is left to guess",
    ),
    (
        &["router.bubble"],
        "vc_release = \"tail-credit\"",
        "a virtual channel that is free only when all its credits are back holds one packet: a ring needs room for a second one to move",
    ),
    (
        &[
            "router.virtual_channels",
            "router.vc_per_destination",
            "router.first_after_change",
            "router.class_queues",
            "router.buffer_flits",
            "router.buffer_policy",
            "router.private_flits",
            "router.most_held_flits",
            "router.speculative",
            "router.speculation",
            "router.congestion",
            "router.lookahead_decides",
            "router.credit_delay",
            "router.vc_release",
            "router.vc_allocator",
            "router.switch_allocator",
            "router.vc_busy_when_full",
            "router.vc_prefer_empty",
            "router.bubble",
            "router.priority",
            "router.input_speedup",
            "router.output_speedup",
            "router.internal_speedup",
            "router.output_buffer_flits",
            "router.hold_switch",
            "router.long_stages",
            "router.predictor",
            "router.predictor_fold",
            "router.predictor_entries",
            "router.predictor_history",
            "router.predictor_levels",
            "router.predictor_match",
            "router.on_miss",
            "router.hint_cycles",
            "router.forward_copies",
            "router.hit_saves",
        ],
        "has no meaning for output-queued routers",
        "a router with a queue for each output has no virtual channels, input buffers or credits, and no switch that is allocated",
    ),
    (&["router.latency"], "conflicts with pipeline", "a router takes one time"),
    (&["router.queue_flits"], "keeps whole packets in a queue", "a packet that waits as a whole needs room for all of it"),
    (&["router.predictor"], "does not fit", "a predictor knows the shape of some networks only"),
    (&["router.on_miss"], "hint bits are worked out for", "what the bits before a packet tell hangs on the shape of the network"),
    (
        &["router.switch_allocator", "router.hold_switch", "router.input_speedup", "router.output_speedup"],
        "has no meaning for crosspoint routers",
        "a crosspoint router has no switch that is allocated: each output takes from its own queues",
    ),
    (&["router.pipeline"], "bids speculatively for the switch", "the same"),
    (&["router.buffer_flits"], "it must be 4 or more with endpoint.model", "a packet waits as a whole for its interface"),
    (&["router.buffer_flits"], "keeps whole packets in a buffer", "a packet that waits as a whole needs room for all of it"),
    (&["router.virtual_channels"], "users with virtual channels of their own", "there are fewer virtual channels than users"),
    (&["router.bubble"], "keeps the rings of a torus", "other networks have no rings that are known"),
    (&["router.bubble"], "needs packets of one length", "what short packets leave free in several buffers is no room for a long one"),
    (&["router.bubble"], "needs architecture = \"input-queued\"", "a ring is one buffer after the other, not one for each output"),
    (&["router.bubble"], "which wormhole switching does not know", "a bubble is room for a whole packet"),
    (&["router.bubble"], "conflicts with predictor", "a hit enters the next buffer before the room in it is known"),
    (&["router.buffer_flits"], "enters a ring with a bubble only where", "a bubble is room for a second packet"),
    (&["routing.algorithm"], "possible deadlock", "packets could wait for each other for ever"),
    (&["routing.algorithm"], "does not lead round what is down", "its paths follow from numbers, which have not changed"),
    (&["faults.links.0"], "no link joins", "routers 0 and 1 are neighbours on some networks only"),
    (&["faults.links.0"], "links join", "they are joined by several links on others"),
    (&["faults"], "cut the network", "without that link no path is left"),
    (&["routing.algorithm"], "does not fit", "a routing knows the shape of some networks only"),
    (&["traffic.pattern"], "does not fit", "a pattern needs an address of some form"),
    (&["router.pipeline"], "a router with a predictor needs", "a guess takes the place of stages that have cycles of their own"),
    (
        &["router.architecture", "router.vc_per_destination"],
        "needs a routing that chooses one port",
        "the router before chooses the queue, and with it the port",
    ),
    (&["router.vc_per_destination"], "whose requests and replies keep apart", "replies that wait behind requests would wait for ever"),
    (&["traffic"], "its routers carry only the parcels of its programs", "the machine's routers know no other packets"),
    (&["traffic"], "users.isolation leaves this user", "a user that is kept apart has no other virtual channels"),
    (&["workload.trace", "workload.dimensions"], " ranks; the network has ", "a program has so many ranks, each of which needs a terminal"),
    (
        &["workload.collective", "workload.message_flits", "workload.matrix_flits", "workload.trace"],
        "unknown key",
        "a machine has programs of its own, with keys of their own",
    ),
    (&["measure.search"], "has a load of its own", "a search sets the load"),
    (&["measure.until"], "asks for a batch of each terminal", "a terminal with open traffic never finishes"),
    (
        &[
            "traffic.virtual_channels",
            "traffic.reply.virtual_channels",
            "traffic.class.0.virtual_channels",
            "traffic.class.1.virtual_channels",
        ],
        "one past the last] within",
        "there are no such virtual channels",
    ),
    (&["router.vc_per_destination"], "queues are for outputs or for destinations", "a queue has one meaning"),
    (&["router.virtual_channels"], "one half for requests, one for replies", "requests and replies have virtual channels of their own"),
    (&["router.buffer_flits"], "a buffer holds whole packets", "a packet that waits as a whole needs room for all of it"),
    (&["router.architecture"], "with endpoint.model = \"cenju4\"", "the machine is made of crosspoint routers"),
    (&["measure.search"], "asks what the network sustains", "accesses that fail are no load that a network sustains"),
    (&["traffic.batch_packets"], "unknown key", "only a batch has a number of packets"),
    (&["endpoint.model"], "which is no interface of its node", "the words of a node are in its memory"),
    (&["endpoint"], "conflicts with [[user]] where endpoint.model = \"cenju4\"", "its interfaces have tables, and its tasks are its users"),
    (
        &["table_writes"],
        "is for open traffic and for programs on a machine",
        "a rank or a batch stands at one terminal, and a table that is written may give its node two or none",
    ),
    (&["change_every"], "stays on its terminal", "memories and queue pairs belong to a terminal"),
    (&["measure.search"], "has no load", "what is closed has no load that could be searched"),
    (&["network.channel_gbit_per_second"], "conflicts with cycle_ns", "a cycle has one length"),
    (&["network.rate"], "conflicts with", "a cycle has one length"),
];

/// Refusals of possible machines that no table of an engine lists: features to build.
pub(crate) const MISSING: &[Excuse] = &[
    (
        &["user", "endpoint"],
        "does not go with terminals with several ports",
        "tables and interfaces would have to know the ports of a terminal",
    ),
    (&["faults"], "does not go with terminals with several ports", "terminals would have to hear which of their ports still lead where"),
    (
        &["traffic.class.0.shares_coins"],
        "do not offer equal loads",
        "a terminal would toss one coin for all its ports, which are chosen with other probabilities",
    ),
    (&["traffic.process"], "is a batch, of which every port sends as much", "the batches of ports would have to be of different lengths"),
];

/// Engine, part of the message, and why only the run can show it.
pub(crate) const ONLY_RUN: &[(&str, &str, &str)] = &[];

/// Engine, two values, and what goes wrong with them: to be mended.
pub(crate) const FAULTS: &[(&str, &str, &str, &str)] = &[];
