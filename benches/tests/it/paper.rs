//! The paper's tables and figures, tiny, with the GPU's kernels on the processor.

use std::process::Command;

use benches::paper::figures::Figures;
use benches::paper::plan::{Plan, Section, Who};
use benches::paper::progress::Progress;
use benches::paper::report::{Provenance, report};
use benches::paper::{absences, aims, plots, run};
use device::Device;

fn tiny() -> Plan {
    Plan {
        sizes: vec![50, 200],
        table2_subscriptions: 100,
        // So large that a few filters find something.
        coverages: vec![0.000_01, 0.000_1, 0.01, 0.2],
        rounds: 2,
        events: 40,
        moves: 100,
        many: 20,
        batch: 64,
        step_events: 5,
        ..Plan::quick()
    }
}

/// Values above zero in every round, for each of these curves at each size.
fn assert_curves(figures: &Figures, panel: &str, sizes: &[u32], series: &[&str]) {
    let mut measured = figures.series(panel);
    measured.sort_unstable();
    let mut expected = series.to_vec();
    expected.sort_unstable();
    assert_eq!(measured, expected, "{panel}");
    assert_eq!(figures.sizes(panel), sizes, "{panel}");
    assert!(figures.of(panel).all(|point| point.least() > 0.0 && point.largest().is_finite()), "{panel}");
}

#[test]
fn every_table_and_figure_has_its_curves_and_a_report_and_plots_come_out() {
    let (plan, devices) = (tiny(), [Device::host(1 << 30)]);
    let figures = run(&plan, &devices, &mut Progress::new()).unwrap();
    let matching = ["cells", "clcb", "gpu", "gpu in batches", "rtree", "rtree + content"];
    for panel in ["fig3a", "fig3b", "fig3c", "fig3d", "fig4a", "fig4b", "fig4c", "fig4d"] {
        assert_curves(&figures, panel, &plan.sizes, &matching);
    }
    for panel in ["fig5a", "fig5b"] {
        let moving = [
            "cells, a lone filter",
            "cells, filters of one client",
            "clcb, a lone filter",
            "clcb, many at once",
            "gpu, a lone filter",
            "gpu, many at once",
            "rtree, a lone filter",
            "rtree, filters of one client",
        ];
        assert_curves(&figures, panel, &plan.sizes, &moving);
    }
    for panel in ["fig6a", "fig6b"] {
        assert_eq!(figures.series(panel), ["Copy input", "Loc", "Cont", "Zip", "Copy result"]);
    }
    assert_curves(&figures, "fig7", &plan.sizes, &["cells", "clcb, on the GPU", "gpu, on the GPU"]);
    assert!(figures.series("table2").len() >= 6, "{:?}", figures.series("table2"));
    // What was checked found something.
    for panel in ["fig3d", "fig4d", "fig5a", "fig5b", "fig6b"] {
        let found =
            figures.checks().iter().filter(|check| check.panel == panel).map(|check| check.checked.nearby);
        assert!(found.sum::<u64>() > 0, "{panel}");
    }
    assert_eq!(aims::outcomes(&figures).len(), aims::AIMS.len());

    let folder = tempfile::tempdir().unwrap();
    let drawn = plots::write_all(&plan, &figures, folder.path()).unwrap();
    assert_eq!(drawn, ["fig3", "fig4", "fig5", "fig6", "fig7"]);
    for stem in &drawn {
        let svg = std::fs::read_to_string(folder.path().join(stem).with_extension("svg")).unwrap();
        assert!(svg.contains("subscriptions (thousands)") && svg.trim_end().ends_with("</svg>"), "{stem}");
        let png = std::fs::File::open(folder.path().join(stem).with_extension("png")).unwrap();
        let mut reader = png::Decoder::new(std::io::BufReader::new(png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        assert!(pixels.iter().any(|value| *value < 128), "{stem} is not blank");
    }
    let text = report(&plan, &figures, &Provenance::default(), &drawn);
    for part in
        ["Table 2", "Fig. 3", "Fig. 4", "Fig. 5", "Fig. 6", "Fig. 7", "251.7x", "1,985x", "](fig6.png)"]
    {
        assert!(text.contains(part), "{part}");
    }
    let rows = figures.csv().unwrap().lines().count() - 1;
    assert!(rows > 150, "{rows}");
}

#[test]
fn only_what_is_asked_for_is_measured() {
    let plan =
        Plan { sections: vec![Section::Fig5], engines: vec![Who::Cells, Who::Rtree, Who::Gpu], ..tiny() };
    let figures = run(&plan, &[], &mut Progress::new()).unwrap();
    assert_eq!(figures.sizes("fig5b"), plan.sizes);
    assert!(figures.of("fig3b").next().is_none() && figures.of("table2").next().is_none());
    assert_eq!(figures.series("fig5a").iter().filter(|series| series.starts_with("gpu")).count(), 0);
    let why = absences(&plan, &[], Some("it is not there")).unwrap();
    assert!(why.contains("`gpu`") && !why.contains("`clcb`") && why.contains("it is not there"), "{why}");
    let text = report(&plan, &figures, &Provenance::default(), &["fig5"]);
    assert!(text.contains("## Fig. 5") && !text.contains("## Fig. 3") && !text.contains("## Table 2"));
}

#[test]
fn equal_seeds_have_equal_answers() {
    let checksums = |seed| {
        let plan = Plan { seed, sections: vec![Section::Fig3], engines: vec![Who::Cells], ..tiny() };
        let figures = run(&plan, &[], &mut Progress::new()).unwrap();
        figures.checks().iter().map(|check| check.checked.checksum).collect::<Vec<_>>()
    };
    assert_eq!(checksums(7), checksums(7));
    assert_ne!(checksums(7), checksums(8));
}

#[test]
fn the_program_names_the_sections_that_there_are() {
    let output = Command::new(env!("CARGO_BIN_EXE_paper")).args(["--only", "fig2"]).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("fig3"));
}
