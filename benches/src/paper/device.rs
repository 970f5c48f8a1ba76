//! Fig. 6 and 7: the steps of CLCB on a device, and what the filters take.

use anyhow::Context;
use matcher::engine::{Engine as _, MatchRows};
use matcher_gpu::{Form, Step};

use super::checks::check_now;
use super::field::Field;
use super::figures::Figures;
use super::matching::Ladder;
use super::plan::Plan;
use crate::gpu::figures::us_each;

/// Unit of a step.
pub const STEP_UNIT: &str = "us a step";
/// Unit of memory.
pub const MEMORY_UNIT: &str = "MiB";
/// Events on which all engines' answers are checked.
const CHECKED: usize = 20;

/// The five steps, in the plain form, which is the paper's.
///
/// # Errors
/// When the device fails, or an answer is wrong.
pub fn steps(
    plan: &Plan,
    panel: &'static str,
    field: &mut Field,
    ladder: &Ladder,
    figures: &mut Figures,
) -> anyhow::Result<()> {
    let (size, workload) = (field.subscriptions(), field.workload()?);
    let clcb = field.clcb.as_mut().context("the engine whose steps are asked for")?;
    clcb.set_form(Form::Plain);
    let mut values = [const { Vec::new() }; 5];
    let mut rows = MatchRows::new();
    for (index, event) in ladder.all().timed.iter().cycle().take(2 * plan.step_events).enumerate() {
        rows.clear();
        let times = clcb.match_timed(&event.event, &mut rows)?;
        // The first half warms up.
        if index >= plan.step_events {
            for (step, values) in Step::ALL.into_iter().zip(&mut values) {
                values.push(us_each(times.of(step), 1));
            }
        }
    }
    for (step, values) in Step::ALL.into_iter().zip(values) {
        figures.push(panel, step.name(), size, STEP_UNIT, values);
    }
    // Checked in the form that was timed.
    check_now(panel, field, &workload, (ladder, CHECKED), None, figures)?;
    if let Some(clcb) = &mut field.clcb {
        clcb.set_form(Form::Fast);
    }
    Ok(())
}

/// Bytes of what is installed: on the CPU everything that the engine holds, on a device what lies there.
pub fn memory(panel: &'static str, field: &Field, figures: &mut Figures) {
    let size = field.subscriptions();
    let mut push = |series, bytes: usize| {
        figures.push(panel, series, size, MEMORY_UNIT, vec![bytes as f64 / 1_048_576.0]);
    };
    if let Some(cells) = &field.cells {
        push("cells", cells.footprint().bytes);
    }
    if let Some(clcb) = &field.clcb {
        push("clcb, on the GPU", clcb.arrays_bytes());
    }
    if let Some(gpu) = &field.gpu {
        push("gpu, on the GPU", gpu.device_bytes());
    }
}
