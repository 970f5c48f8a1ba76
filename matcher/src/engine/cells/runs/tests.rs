//! Lanes as they are written, read and tested.

use super::super::clusters::Fence;
use super::*;

fn lane(record: u32, xy: [u8; 2], reach: u8, required: u8) -> Lane {
    let owner = Owner { record, subscription: record + 100, complete: record.is_multiple_of(2) };
    let spot = Spot { xyz: [xy[0], xy[1], 0], reach };
    Lane { spot, required, owner, fence: Fence::OPEN.fields }
}

fn run_with(lanes: &[Lane], class: u8) -> (Runs, Run) {
    let mut runs = Runs::new();
    let first_line = runs.allocate(class).unwrap();
    let run = Run { first_line, class, crowded: false, len: u16::try_from(lanes.len()).unwrap() };
    for (index, lane) in (0..).zip(lanes) {
        runs.set_lane(&run.slot(index), lane);
    }
    for (index, lane) in (0..).zip(lanes) {
        assert_eq!(runs.lane(&run.slot(index)), *lane);
    }
    (runs, run)
}

fn hits(runs: &Runs, run: &Run, cluster: &ClusterProbe) -> Vec<(u32, bool)> {
    let mut candidates = Vec::new();
    runs.append_candidates(run, &[804, 804, 4], cluster.absent, 0, &mut candidates);
    let hits = candidates.iter().filter_map(|candidate| runs.test(candidate, cluster, 0b011));
    hits.map(|hit| (hit.owner.record, hit.in_reach && hit.in_fence)).collect()
}

const ANY: ClusterProbe =
    ClusterProbe { cluster: 0, masked: false, absent: 0b100, codes: u16x16::new([9; 16]) };

#[test]
fn tests_look_at_names_place_and_fence() {
    let mut outside = lane(6, [100, 100], 50, 0b001);
    outside.fence[3] = 10;
    let mut on_the_fence = lane(7, [100, 100], 50, 0);
    on_the_fence.fence[8] = 9;
    let lanes = [
        lane(1, [100, 100], 50, 0b001),
        lane(2, [100, 100], 50, 0b100),
        lane(3, [100, 160], 50, 0b011),
        lane(4, [100, 148], 50, 0b011),
        lane(5, [255, 255], 130, 0b010),
        outside,
        on_the_fence,
        lane(8, [100, 100], 50, 0),
        lane(9, [99, 99], 50, 0b001),
        lane(10, [100, 100], 50, 0b111),
    ];
    let (runs, run) = run_with(&lanes, 5);
    let codes = std::array::from_fn(|index| if index < 2 * COLUMNS { 9 } else { u16::MAX });
    let any = ClusterProbe { codes: u16x16::new(codes), ..ANY };
    assert_eq!(hits(&runs, &run, &any), [(1, true), (4, false), (7, false), (8, true), (9, true)]);
}

#[test]
fn runs_of_every_class_have_their_lanes_and_no_others() {
    for class in 0..=CLASS_MAX {
        let count = capacity(class);
        let lanes: Vec<Lane> = (0..count).map(|index| lane(index.into(), [100, 100], 9, 0)).collect();
        let (runs, run) = run_with(&lanes, class);
        let any = ClusterProbe { codes: u16x16::splat(u16::MAX), ..ANY };
        assert_eq!(hits(&runs, &run, &any).len(), usize::from(count), "class {class}");
    }
}

#[test]
fn masked_runs_look_at_masks() {
    let mut far = lane(2, [100, 100], 50, 0);
    far.fence[0] = 0b100;
    let (runs, run) = run_with(&[lane(1, [100, 100], 50, 0), far], 1);
    assert_eq!(hits(&runs, &run, &ClusterProbe { masked: true, ..ANY }), [(1, false)]);
}
