//! The paper's evaluation on the machine at hand: Table 2 and Fig. 3 to 7 of Cugola and Margara, "High-performance
//! location-aware publish-subscribe on GPUs" (Middleware 2012), with our engines and what one would otherwise use.
//!
//! A run goes scene by scene (a workload whose subscriptions grow from size to size), and does on each what the
//! figures need. Every answer that is timed is checked; the first wrong one ends the run.

pub mod aims;
mod axis;
pub mod checks;
pub mod device;
pub mod field;
pub mod figures;
pub mod matching;
pub mod moves;
pub mod plan;
pub mod plot;
pub mod plots;
pub mod progress;
pub mod report;
pub mod scene;
pub mod table2;

use ::device::Device;
use anyhow::Context;

use crate::engines::report::thousands;
use field::Field;
use figures::Figures;
use matching::Ladder;
use plan::{Plan, Who};
use progress::Progress;
use scene::Scene;

/// Measures what the plan asks for; the GPU engines on these devices, where there are any.
///
/// # Errors
/// The first wrong answer, or what an engine fails with.
pub fn run(plan: &Plan, devices: &[Device], progress: &mut Progress) -> anyhow::Result<Figures> {
    let mut figures = Figures::default();
    let scenes = scene::scenes(plan, devices);
    progress.expect(scenes.iter().map(|scene| scene.seconds(plan)).sum::<f64>() + table2::seconds(plan));
    if plan.shows(plan::Section::Table2) {
        table2::measure(plan, &mut figures, progress).context("Table 2")?;
    }
    for scene in &scenes {
        play(plan, scene, devices, &mut figures, progress).with_context(|| scene.title.clone())?;
    }
    Ok(figures)
}

/// One scene at all its sizes.
fn play(
    plan: &Plan,
    scene: &Scene,
    devices: &[Device],
    figures: &mut Figures,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let mut field = Field::new(scene, plan, devices)?;
    let ladder = Ladder::new(&field.workload()?, plan.events)?;
    let mut before = 0;
    for size in &plan.sizes {
        let at = format!("{}, {} subscriptions", scene.title, thousands((*size).into()));
        progress.doing(&at);
        field.grow(*size)?;
        progress.done(scene.fill_seconds(before, *size));
        if scene.matching.is_some() {
            matching::measure(plan, scene, &mut field, &ladder, figures).context(at.clone())?;
            progress.done(scene.race_seconds(plan, *size));
        }
        if let Some(panel) = scene.steps {
            device::steps(plan, panel, &mut field, &ladder, figures).context(at.clone())?;
        }
        if let Some(panel) = scene.memory {
            device::memory(panel, &field, figures);
        }
        if let Some(panel) = scene.moves {
            moves::measure(plan, panel, &mut field, &ladder, figures).context(at.clone())?;
            progress.done(scene.moves_seconds(plan, *size));
        }
        before = *size;
    }
    Ok(())
}

/// Why an engine that could take part does not.
#[must_use]
pub fn absences(plan: &Plan, devices: &[Device], reason: Option<&str>) -> Option<String> {
    let missing = [Who::Clcb, Who::Gpu].into_iter().filter(|who| plan.has(*who) && devices.is_empty());
    let names: Vec<String> = missing.map(|who| format!("`{}`", who.label())).collect();
    if names.is_empty() {
        return None;
    }
    Some(format!(
        "The GPU engines {} are absent because this machine has no GPU that they can use ({}); gpu.md in the folder \
         `docs/results` has their figures.",
        names.join(" and "),
        reason.unwrap_or("no device was given"),
    ))
}
