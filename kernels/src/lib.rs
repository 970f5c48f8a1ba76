//! The CUDA kernels: their PTX, and the records that they share with the host.
//!
//! The sources are `src/*.cu` over `include/*.cuh`; `make ptx` compiles them, and the build refuses PTX that does not
//! belong to its source. With the feature `host` they are also compiled as plain C++, so that tests run them on the
//! processor; code with block-wide barriers is out of that's reach.
//!
//! A kernel is started by its typed launcher in the crate that uses it (`device` for `probe`, `checks-gpu` for checks, `rules-gpu` for rules, `groups-gpu` for networks, `routes-gpu` for routes, `traffic-gpu` for traffic, `matcher-gpu` for the others), which knows its parameters.

#![forbid(unsafe_code)]

pub mod checks;
pub mod checks_joined;
pub mod clcb;
pub mod gpu;
pub mod groups;
pub mod routes;
pub mod rules;
pub mod traffic;

/// One source's PTX.
#[derive(Clone, Copy, Debug)]
pub struct Module {
    /// The source's name without its ending, as in `kernel_probe`.
    pub name: &'static str,
    /// Text that the driver compiles for the device that it finds.
    pub ptx: &'static str,
}

/// Names each source's module.
macro_rules! modules {
    ($($(#[$doc:meta])* $constant:ident = $name:literal;)*) => {
        $(
            $(#[$doc])*
            pub const $constant: Module =
                Module { name: $name, ptx: include_str!(concat!("../ptx/", $name, ".ptx")) };
        )*

        /// Every source's.
        pub const MODULES: &[Module] = &[$($constant),*];
    };
}

modules! {
    /// Tells whether a device runs our kernels at all: `probe`.
    PROBE = "kernel_probe";
    /// Checks: GAIN.
    CHECKS = "kernel_checks";
    /// Checks past GAIN: batches of changes, and joins.
    CHECKS_JOINED = "kernel_checks_joined";
    /// Constraint Handling Rules.
    RULES = "kernel_rules";
    /// Constraint Handling Rules to the letter of their paper.
    RULES_LETTER = "kernel_rules_letter";
    /// Arc consistency on bits.
    GROUPS = "kernel_groups";
    /// The N-E model, AC4GPU and AC4GPU+.
    GROUPS_LETTER = "kernel_groups_letter";
    /// PAP*.
    ROUTES = "kernel_routes";
    /// Traffic of a country.
    TRAFFIC = "kernel_traffic";
    /// CLCB to the letter: Loc, Cont and Zip.
    CLCB = "kernel_clcb";
    /// Changes of the batched engine's table.
    GPU_TABLE = "kernel_gpu_table";
    /// Its sort by cell.
    GPU_SORT = "kernel_gpu_sort";
    /// Its search.
    GPU_MATCH = "kernel_gpu_match";
}

/// The oldest CUDA version whose driver reads this PTX, as (major, minor).
pub const CUDA_VERSION_MIN: (u32, u32) = (13, 0);

/// The oldest compute capability that this PTX is for, as (major, minor).
pub const COMPUTE_CAPABILITY_MIN: (u32, u32) = (7, 5);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_source_has_its_module() {
        let sources: BTreeSet<String> = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("src")
            .read_dir()
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|it| it == "cu"))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        let modules: BTreeSet<String> = MODULES.iter().map(|module| module.name.to_owned()).collect();
        assert_eq!(modules, sources);
    }

    #[test]
    fn every_kernel_runs_on_the_host_too() {
        for module in MODULES {
            let source =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(format!("{}.cu", module.name));
            let source = std::fs::read_to_string(source).unwrap();
            for line in module.ptx.lines() {
                if let Some(name) =
                    line.strip_prefix(".visible .entry ").and_then(|rest| rest.strip_suffix('('))
                {
                    let entry = format!("HOST_ENTRY({name})");
                    assert!(source.lines().any(|line| line == entry), "{} has no {entry}", module.name);
                }
            }
        }
    }

    /// The value of `constexpr uint32_t NAME = ...;` in a header.
    fn in_header(header: &str, name: &str) -> u32 {
        let start = format!("constexpr uint32_t {name} = ");
        let value = header.lines().find_map(|line| line.strip_prefix(&start)?.strip_suffix(';'));
        let value = value.unwrap_or_else(|| panic!("no {name}")).replace('u', "");
        match (value.strip_prefix("1 << "), value.strip_prefix("0x")) {
            (Some(bit), _) => 1 << bit.parse::<u32>().unwrap(),
            (_, Some(digits)) => u32::from_str_radix(digits, 16).unwrap(),
            _ => value.parse().unwrap(),
        }
    }

    #[test]
    fn headers_have_the_same_constants() {
        let gpu = include_str!("../include/gpu.cuh");
        for (name, value) in [
            ("LEVELS", gpu::LEVELS as u64),
            ("CHUNK", gpu::CHUNK as u64),
            ("NONE", gpu::NONE.into()),
            ("KIND_CIRCLE", gpu::KIND_CIRCLE.into()),
            ("KIND_LIVE", gpu::KIND_LIVE.into()),
            ("EVENT_DOUBT", gpu::EVENT_DOUBT.into()),
            ("NAME_OPTIONAL", gpu::NAME_OPTIONAL.into()),
            ("NAME_COMPLETE", gpu::NAME_COMPLETE.into()),
            ("NAME_ARRAY", gpu::NAME_ARRAY.into()),
            ("ANSWER_DOUBT", gpu::ANSWER_DOUBT.into()),
        ] {
            assert_eq!(u64::from(in_header(gpu, name)), value, "{name}");
        }
        let checks = include_str!("../include/checks.cuh");
        for (name, value) in [
            ("NODES", checks::NODES as u64),
            ("CODE", checks::CODE as u64),
            ("DEPTH", checks::DEPTH as u64),
            ("STACK", checks::STACK as u64),
            ("ABSENT", checks::ABSENT.into()),
            ("LEAF", checks::LEAF.into()),
            ("FORALL", checks::FORALL.into()),
            ("EXISTS", checks::EXISTS.into()),
            ("AND", checks::AND.into()),
            ("OR", checks::OR.into()),
            ("IMPLIES", checks::IMPLIES.into()),
            ("NOT", checks::NOT.into()),
            ("PUSH_CELL", checks::PUSH_CELL.into()),
            ("PUSH_NUMBER", checks::PUSH_NUMBER.into()),
            ("PUSH_TEXT", checks::PUSH_TEXT.into()),
            ("PUSH_BOOL", checks::PUSH_BOOL.into()),
            ("PUSH_ARRAY", checks::PUSH_ARRAY.into()),
            ("PUSH_DISTANCE", checks::PUSH_DISTANCE.into()),
            ("PUSH_ELAPSED", checks::PUSH_ELAPSED.into()),
            ("PUSH_SPEED", checks::PUSH_SPEED.into()),
            ("NEGATE", checks::NEGATE.into()),
            ("ABSOLUTE", checks::ABSOLUTE.into()),
            ("ARITHMETIC", checks::ARITHMETIC.into()),
            ("PUSH_NOTHING", checks::PUSH_NOTHING.into()),
            ("COMPARE", checks::COMPARE.into()),
            ("BETWEEN", checks::BETWEEN.into()),
            ("TRUTH_CELL", checks::TRUTH_CELL.into()),
            ("TRUTH_CONSTANT", checks::TRUTH_CONSTANT.into()),
            ("SAME", checks::SAME.into()),
            ("TRUTH_NOT", checks::TRUTH_NOT.into()),
            ("TRUTH_AND", checks::TRUTH_AND.into()),
            ("TRUTH_OR", checks::TRUTH_OR.into()),
            ("MAY_HOLD", checks::MAY_HOLD.into()),
            ("MAY_FAIL", checks::MAY_FAIL.into()),
            ("MAY_BE_UNKNOWN", checks::MAY_BE_UNKNOWN.into()),
            ("MAY_BE_ANY", checks::MAY_BE_ANY.into()),
            ("NOTHING", checks::NOTHING.into()),
            ("NUMBER", checks::NUMBER.into()),
            ("TEXT", checks::TEXT.into()),
            ("BOOL", checks::BOOL.into()),
            ("ARRAY", checks::ARRAY.into()),
            ("HEAD_DOUBTS", checks::HEAD_DOUBTS as u64),
            ("HEAD_LINKS", checks::HEAD_LINKS as u64),
            ("HEAD_OVERFLOW", checks::HEAD_OVERFLOW as u64),
            ("HEAD_ROOT", checks::HEAD_ROOT as u64),
            ("HEAD_BEGIN", checks::HEAD_BEGIN as u64),
            ("HEAD_LENGTH", checks::HEAD_LENGTH as u64),
        ] {
            assert_eq!(u64::from(in_header(checks, name)), value, "{name}");
        }
        let joined = include_str!("kernel_checks_joined.cu");
        for (name, value) in [
            ("JOINED_LEAVES", checks_joined::JOINED_LEAVES),
            ("JOINED_STEPS", checks_joined::JOINED_STEPS),
            ("JOINED_STACK", checks_joined::JOINED_STACK),
            ("JOINED_KEYS", checks_joined::JOINED_KEYS),
            ("JOINED_LOOKUPS", checks_joined::JOINED_LOOKUPS),
            ("JOINED_CHUNK", checks_joined::JOINED_CHUNK),
            ("STEP_FALSE", checks_joined::STEP_FALSE.into()),
            ("STEP_LEAF", checks_joined::STEP_LEAF.into()),
            ("STEP_SOME", checks_joined::STEP_SOME.into()),
            ("STEP_AND", checks_joined::STEP_AND.into()),
            ("STEP_OR", checks_joined::STEP_OR.into()),
            ("JOINED_DOUBTS", checks_joined::JOINED_DOUBTS),
            ("JOINED_TOLD", checks_joined::JOINED_TOLD),
            ("JOINED_ENTRIES", checks_joined::JOINED_ENTRIES),
        ] {
            assert_eq!(in_header(joined, name) as usize, value, "{name}");
        }
        let rules_header = include_str!("../include/rules.cuh");
        for (name, value) in [
            ("RULES_HEADS", rules::HEADS as u64),
            ("RULES_SLOTS", rules::SLOTS as u64),
            ("RULES_STACK", rules::STACK as u64),
            ("RULES_ARITY", rules::ARITY as u64),
            ("RULES_CHUNK", rules::CHUNK as u64),
            ("NOWHERE", rules::NOWHERE.into()),
            ("WHOLE", rules::WHOLE.into()),
            ("FLOAT", rules::FLOAT.into()),
            ("NAME", rules::NAME.into()),
            ("MEASURED", rules::MEASURED.into()),
            ("HEAD_ROUND", rules::HEAD_ROUND as u64),
            ("HEAD_STOP", rules::HEAD_STOP as u64),
            ("HEAD_ERROR", rules::HEAD_ERROR as u64),
            ("HEAD_STORED", rules::HEAD_STORED as u64),
            ("HEAD_ACTIVE", rules::HEAD_ACTIVE as u64),
            ("HEAD_SURVIVORS", rules::HEAD_SURVIVORS as u64),
            ("HEAD_KEPT", rules::HEAD_KEPT as u64),
            ("HEAD_FOUND", rules::HEAD_FOUND as u64),
            ("HEAD_NEW", rules::HEAD_NEW as u64),
            ("HEAD_SURVIVING", rules::HEAD_SURVIVING as u64),
            ("HEAD_APPLIED", rules::HEAD_APPLIED as u64),
            ("HEAD_DEAD", rules::HEAD_DEAD as u64),
            ("HEAD_NEEDED", rules::HEAD_NEEDED as u64),
            ("ROUND_FIRST", rules::ROUND_FIRST.into()),
            ("RUNS", rules::RUNS.into()),
            ("DONE", rules::DONE.into()),
            ("NO_PROPOSALS", rules::NO_PROPOSALS.into()),
            ("NO_CONSTRAINTS", rules::NO_CONSTRAINTS.into()),
            ("FAILED", rules::FAILED.into()),
            ("ERROR", rules::ERROR.into()),
            ("NO_ERROR", rules::NO_ERROR.into()),
            ("TOO_WIDE", rules::TOO_WIDE.into()),
            ("BY_ZERO", rules::BY_ZERO.into()),
            ("UNDEFINED", rules::UNDEFINED.into()),
            ("TOO_LARGE", rules::TOO_LARGE.into()),
            ("NOT_A_NUMBER", rules::NOT_A_NUMBER.into()),
            ("NOT_WHOLE", rules::NOT_WHOLE.into()),
            ("TOO_NEAR", rules::TOO_NEAR.into()),
            ("YES", rules::YES.into()),
            ("NO", rules::NO.into()),
            ("MATCH_CONSTANT", rules::MATCH_CONSTANT.into()),
            ("MATCH_SLOT", rules::MATCH_SLOT.into()),
            ("BIND", rules::BIND.into()),
            ("PUSH_CONSTANT", rules::PUSH_CONSTANT.into()),
            ("PUSH_SLOT", rules::PUSH_SLOT.into()),
            ("STORE", rules::STORE.into()),
            ("UNARY", rules::UNARY.into()),
            ("BINARY", rules::BINARY.into()),
            ("COMPARE", rules::COMPARE.into()),
            ("SAME", rules::SAME.into()),
            ("JUMP", rules::JUMP.into()),
            ("JUMP_UNLESS", rules::JUMP_UNLESS.into()),
            ("NUMBER", rules::NUMBER.into()),
            ("ADD", rules::ADD.into()),
            ("DISTANCE", rules::DISTANCE.into()),
            ("MINUS", rules::MINUS.into()),
            ("ABS", rules::ABS.into()),
            ("SIGN", rules::SIGN.into()),
            ("SQRT", rules::SQRT.into()),
            ("TO_FLOAT", rules::TO_FLOAT.into()),
            ("ROUND", rules::ROUND.into()),
            ("TRUNCATE", rules::TRUNCATE.into()),
            ("FLOOR", rules::FLOOR.into()),
            ("CEILING", rules::CEILING.into()),
            ("COMPLEMENT", rules::COMPLEMENT.into()),
            ("PLUS", rules::PLUS.into()),
            ("SUBTRACT", rules::SUBTRACT.into()),
            ("MULTIPLY", rules::MULTIPLY.into()),
            ("DIVIDE", rules::DIVIDE.into()),
            ("INT_DIVIDE", rules::INT_DIVIDE.into()),
            ("DIV", rules::DIV.into()),
            ("MOD", rules::MOD.into()),
            ("REM", rules::REM.into()),
            ("MIN", rules::MIN.into()),
            ("MAX", rules::MAX.into()),
            ("SHIFT_LEFT", rules::SHIFT_LEFT.into()),
            ("SHIFT_RIGHT", rules::SHIFT_RIGHT.into()),
            ("BIT_AND", rules::BIT_AND.into()),
            ("BIT_OR", rules::BIT_OR.into()),
            ("BIT_XOR", rules::BIT_XOR.into()),
        ] {
            assert_eq!(u64::from(in_header(rules_header, name)), value, "{name}");
        }
        let groups_header = include_str!("../include/groups.cuh");
        for (name, value) in [
            ("GROUPS_CHUNK", groups::CHUNK as usize),
            ("NE_EMPTY", groups::NE_EMPTY),
            ("NE_DELETED", groups::NE_DELETED),
            ("NE_LOOPS", groups::NE_LOOPS),
            ("NE_NO_LOOP", groups::NE_NO_LOOP as usize),
            ("START_ROUND", groups::START_ROUND),
            ("START_EMPTY", groups::START_EMPTY),
            ("TOLD_FLAG", groups::TOLD_FLAG),
            ("TOLD_HEAD", groups::TOLD_HEAD),
            ("TOLD_WORDS", groups::TOLD_WORDS),
        ] {
            assert_eq!(in_header(groups_header, name) as usize, value, "{name}");
        }
        assert_eq!(in_header(include_str!("kernel_routes.cu"), "ROUTES_BLOCK"), routes::BLOCK);
        let traffic_header = include_str!("../include/traffic.cuh");
        for (name, value) in [
            ("TRAFFIC_NONE", traffic::NONE),
            ("TRAFFIC_ROUTE", traffic::ROUTE),
            ("TRAFFIC_AHEAD", traffic::AHEAD),
            ("TRAFFIC_KNOWN", traffic::KNOWN),
            ("TRAFFIC_TABLE", traffic::TABLE),
            ("TRAFFIC_AHEAD_MM", traffic::AHEAD_MM),
            ("TRAFFIC_WINDOW", traffic::WINDOW),
            ("TRAFFIC_CROSSES", traffic::CROSSES),
            ("TRAFFIC_SIGNALS", traffic::SIGNALS),
            ("TRAFFIC_WEIGHT", traffic::WEIGHT),
            ("TRAFFIC_FOLLOWS", traffic::FOLLOWS),
            ("TRAFFIC_ENTERS", traffic::ENTERS),
            ("TRAFFIC_BEHIND", traffic::BEHIND),
            ("TRAFFIC_FULL", traffic::FULL),
            ("TRAFFIC_WAITS", traffic::WAITS),
            ("TRAFFIC_DRIVES", traffic::DRIVES),
        ] {
            assert_eq!(in_header(traffic_header, name), value, "{name}");
        }
        let clcb = include_str!("../include/clcb.cuh");
        for (name, value) in [
            ("CLCB_PAGE", clcb::PAGE as u64),
            ("NO_FILTER", clcb::NO_FILTER.into()),
            ("SUBS", clcb::SUBS as u64),
            ("TOGETHER", clcb::TOGETHER.into()),
            ("ZIPPED", clcb::ZIPPED.into()),
        ] {
            assert_eq!(u64::from(in_header(clcb, name)), value, "{name}");
        }
    }

    #[test]
    fn the_ptx_asks_for_what_the_constants_say() {
        // PTX ISA 9.0 came with CUDA 13.0.
        assert_eq!(CUDA_VERSION_MIN, (13, 0));
        let target = format!(".target sm_{}{}", COMPUTE_CAPABILITY_MIN.0, COMPUTE_CAPABILITY_MIN.1);
        for module in MODULES {
            assert!(module.ptx.lines().any(|line| line == ".version 9.0"), "{}", module.name);
            assert!(module.ptx.lines().any(|line| line == target), "{}", module.name);
        }
    }
}
