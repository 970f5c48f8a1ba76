//! Programs, and goals for them of any size.

use rand::Rng as _;
use rand::rngs::StdRng;

/// A program, how large its goal is, and the constraints of that.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) file: &'static str,
    pub(super) size: i64,
    pub(super) goal: fn(i64, &mut StdRng) -> Vec<String>,
    /// Whether the store has no variables, so that it can be compared as text.
    pub(super) is_ground: bool,
}

pub(super) const CASES: [Case; 14] = [
    Case { name: "gcd", file: "programs/gcd.chr", size: 40_000, goal: gcd, is_ground: true },
    Case {
        name: "primes",
        file: "programs/primes.chr",
        size: 4_000,
        goal: |n, _| vec![format!("candidate({n})")],
        is_ground: true,
    },
    Case {
        name: "fib, upwards",
        file: "programs/fib_up.chr",
        size: 90,
        goal: |n, _| vec![format!("upto({n})")],
        is_ground: true,
    },
    Case {
        name: "fib, with a memory",
        file: "programs/fib_memo.chr",
        size: 90,
        goal: |n, _| vec![format!("fib({n},X)")],
        is_ground: true,
    },
    Case {
        name: "leq, a circle",
        file: "programs/leq.chr",
        size: 60,
        goal: |n, _| (0..n).map(|i| format!("leq(X{i},X{})", (i + 1) % n)).collect(),
        is_ground: false,
    },
    Case {
        name: "union_find",
        file: "programs/union_find.chr",
        size: 2_000,
        goal: union_find,
        is_ground: true,
    },
    Case {
        name: "reach",
        file: "programs/reach.chr",
        size: 60,
        goal: |n, random| arcs(n, 3 * n, random, |from, to, _| format!("edge({from},{to})")),
        is_ground: true,
    },
    Case { name: "sssp", file: "programs/sssp.chr", size: 300, goal: sssp, is_ground: true },
    Case {
        name: "apsp",
        file: "programs/apsp.chr",
        size: 25,
        goal: |n, random| arcs(n, 3 * n, random, |from, to, length| format!("arc({from},{to},{length})")),
        is_ground: true,
    },
    Case {
        name: "tak, with a memory",
        file: "programs/tak_memo.chr",
        size: 18,
        goal: |n, _| vec![format!("tak({n},12,6,A)")],
        is_ground: true,
    },
    Case { name: "ram", file: "programs/ram.chr", size: 20_000, goal: ram, is_ground: true },
    Case {
        name: "bench_bool",
        file: "swi-bsd/bench_bool.chr",
        size: 1_000,
        goal: |n, _| vec![format!("main({n})")],
        is_ground: false,
    },
    Case {
        name: "bench_fulladder",
        file: "swi-bsd/bench_fulladder.chr",
        size: 600,
        goal: |n, _| vec![format!("main({n})")],
        is_ground: false,
    },
    Case {
        name: "bench_wfs",
        file: "swi-bsd/bench_wfs.chr",
        size: 100,
        goal: |n, _| vec![format!("main({n})")],
        is_ground: false,
    },
];

fn gcd(size: i64, random: &mut StdRng) -> Vec<String> {
    (0..size).map(|_| format!("gcd({})", 6 * random.random_range(1..1_000_000_000_i64))).collect()
}

fn arcs(nodes: i64, count: i64, random: &mut StdRng, text: impl Fn(i64, i64, i64) -> String) -> Vec<String> {
    let mut arc =
        || text(random.random_range(0..nodes), random.random_range(0..nodes), random.random_range(1..100));
    (0..count).map(|_| arc()).collect()
}

fn sssp(nodes: i64, random: &mut StdRng) -> Vec<String> {
    let mut goal = arcs(nodes, 4 * nodes, random, |from, to, length| format!("arc({from},{to},{length})"));
    goal.push("dist(0,0)".to_owned());
    goal
}

fn union_find(size: i64, random: &mut StdRng) -> Vec<String> {
    let makes = (0..size).map(|number| format!("make({number})"));
    let mut unions = || format!("union({},{})", random.random_range(0..size), random.random_range(0..size));
    makes.chain((0..size).map(|_| unions())).collect()
}

/// Adds up by counting down.
fn ram(size: i64, _: &mut StdRng) -> Vec<String> {
    [
        "ins(0,jz,5,1)",
        "ins(1,add,3,0)",
        "ins(2,sub,1,2)",
        "ins(3,jmp,0,0)",
        "ins(5,hlt,0,0)",
        "mem(0,3)",
        "mem(2,1)",
        "mem(3,0)",
    ]
    .map(str::to_owned)
    .into_iter()
    .chain([format!("mem(1,{size})"), "pc(0)".to_owned()])
    .collect()
}
