//! Whether a live event is inside of a subscription, by its areas, its conditions and its hysteresis. Nothing changes here.

use super::super::search::Alike;
use super::super::tracker::Watch;
use super::super::{Fix, Settings};
use super::{Scene, Standing};
use crate::area::Area;
use crate::evaluation;
use crate::event::Event;
use crate::geo::{Position, World};
use crate::subscription::Filter;

impl Watch {
    /// Whether a filter's area waits for a better fix.
    pub(in crate::live) fn is_held(&self, settings: &Settings, area: &Area, fix: Option<&Fix>) -> bool {
        match (area, fix) {
            (Area::Following(radius), Some(fix)) => {
                settings.holds_inaccurate && self.is_for_transitions() && fix.accuracy_m > radius.metres()
            }
            _ => false,
        }
    }

    /// Whether some filter's area waits for a better fix.
    pub(in crate::live) fn holds_some(&self, settings: &Settings, fix: Option<&Fix>) -> bool {
        self.filters.iter().any(|filter| self.is_held(settings, &filter.area, fix))
    }

    /// Whether a filter holds for an event that stands so to the subscription.
    pub(in crate::live) fn holds<P>(
        &self,
        scene: &Scene<P>,
        filter: &Filter,
        fix: Option<&Fix>,
        event: &Event,
        standing: Option<Standing>,
    ) -> bool {
        let position = fix.map(|fix| &fix.position);
        self.is_there(scene, filter, fix, event, standing) && scene.condition_holds(filter, position, event)
            || self.may_linger(scene, filter, fix, standing)
                && scene.condition_holds(filter, position, event)
                && self.lingers(scene.world, &filter.area, position, &event.position)
    }

    /// Whether the area of a filter holds an event, hysteresis aside.
    pub(super) fn is_there<P>(
        &self,
        scene: &Scene<P>,
        filter: &Filter,
        fix: Option<&Fix>,
        event: &Event,
        standing: Option<Standing>,
    ) -> bool {
        scene.work(1);
        if self.is_held(&scene.settings, &filter.area, fix) {
            // Who waits to enter is no member yet, and comes in by a better fix only.
            standing == Some(Standing::Inside)
        } else {
            filter.area.holds(scene.world, fix.map(|fix| &fix.position), &event.position)
        }
    }

    /// Whether an event that is outside of a filter's area may not have left it yet.
    fn may_linger<P>(
        &self,
        scene: &Scene<P>,
        filter: &Filter,
        fix: Option<&Fix>,
        standing: Option<Standing>,
    ) -> bool {
        standing == Some(Standing::Inside)
            && self.transitions().is_some_and(|how| how.hysteresis_m > 0.0)
            && !self.is_held(&scene.settings, &filter.area, fix)
    }

    /// Whether a place outside of an area is not far enough outside to leave.
    fn lingers(&self, world: World, area: &Area, client: Option<&Position>, place: &Position) -> bool {
        self.transitions()
            .is_some_and(|how| !area.is_outside_by_more_than(world, client, place, how.hysteresis_m))
    }

    /// Whether an event is inside by a filter that does not count the nearest.
    pub(in crate::live) fn is_inside<P>(
        &self,
        scene: &Scene<P>,
        fix: Option<&Fix>,
        event: &Event,
        standing: Option<Standing>,
    ) -> bool {
        self.inside_by(scene, fix, event, standing).is_some()
    }

    /// A filter by which it is. Areas are looked at before conditions, each of these once, and how far outside of an area
    /// a place is last of all.
    pub(super) fn inside_by<P>(
        &self,
        scene: &Scene<P>,
        fix: Option<&Fix>,
        event: &Event,
        standing: Option<Standing>,
    ) -> Option<u32> {
        if !evaluation::reaches(scene.world, event, fix.map(|fix| &fix.position)) {
            return None;
        }
        self.alike().find_map(|alike| self.inside_by_one_of(alike, scene, fix, event, standing))
    }

    fn inside_by_one_of<P>(
        &self,
        alike: &Alike,
        scene: &Scene<P>,
        fix: Option<&Fix>,
        event: &Event,
        standing: Option<Standing>,
    ) -> Option<u32> {
        let position = fix.map(|fix| &fix.position);
        let filters = || alike.iter().map(|(_, index)| (*index, &self.filters[*index as usize]));
        let (_, any) = filters().next()?;
        let there = filters().find(|(_, filter)| self.is_there(scene, filter, fix, event, standing));
        if let Some((index, _)) = there {
            return scene.condition_holds(any, position, event).then_some(index);
        }
        let mut lingering =
            filters().filter(|(_, filter)| self.may_linger(scene, filter, fix, standing)).peekable();
        if lingering.peek().is_none() || !scene.condition_holds(any, position, event) {
            return None;
        }
        let lingers =
            |(_, filter): &(u32, &Filter)| self.lingers(scene.world, &filter.area, position, &event.position);
        lingering.find(lingers).map(|(index, _)| index)
    }
}
