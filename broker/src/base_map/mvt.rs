//! Vector tiles as they are packed (Mapbox Vector Tile specification 2.1).

use std::collections::HashMap;

use prost::Message;

/// Units across a tile.
pub(super) const EXTENT: i32 = 4096;

/// A place in units of a tile, from its north-west corner; beyond it where lines lead out.
pub(super) type Unit = [i32; 2];

#[derive(Clone, PartialEq, Message)]
struct Tile {
    #[prost(message, repeated, tag = "3")]
    layers: Vec<Layer>,
}

#[derive(Clone, PartialEq, Message)]
struct Layer {
    #[prost(uint32, required, tag = "15")]
    version: u32,
    #[prost(string, required, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    features: Vec<Feature>,
    #[prost(string, repeated, tag = "3")]
    keys: Vec<String>,
    #[prost(message, repeated, tag = "4")]
    values: Vec<Value>,
    #[prost(uint32, optional, tag = "5")]
    extent: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
struct Feature {
    #[prost(uint32, repeated, tag = "2")]
    tags: Vec<u32>,
    #[prost(int32, optional, tag = "3")]
    form: Option<i32>,
    #[prost(uint32, repeated, tag = "4")]
    geometry: Vec<u32>,
}

#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(string, optional, tag = "1")]
    text: Option<String>,
    #[prost(uint64, optional, tag = "5")]
    number: Option<u64>,
}

/// The form of a feature, with the numbers of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Point = 1,
    Line = 2,
    Area = 3,
}

/// A value of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Property<'a> {
    Text(&'a str),
    Number(u64),
}

/// A layer that is being filled.
#[derive(Default)]
pub(super) struct LayerDraft<'a> {
    features: Vec<Feature>,
    keys: Vec<&'static str>,
    values: HashMap<Property<'a>, u32>,
}

impl<'a> LayerDraft<'a> {
    /// Adds a feature whose parts are lines or rings; rings are closed by their form and have no last corner.
    pub(super) fn add(
        &mut self,
        form: Form,
        parts: &[Vec<Unit>],
        properties: &[(&'static str, Property<'a>)],
    ) {
        let mut tags = Vec::with_capacity(properties.len() * 2);
        for (key, value) in properties {
            let key_idx = self.keys.iter().position(|known| known == key).unwrap_or_else(|| {
                self.keys.push(key);
                self.keys.len() - 1
            });
            let next = number(self.values.len());
            tags.extend([number(key_idx), *self.values.entry(*value).or_insert(next)]);
        }
        self.features.push(Feature { tags, form: Some(form as i32), geometry: geometry(form, parts) });
    }
}

/// Packs the layers that have features.
pub(super) fn pack<'a>(layers: impl IntoIterator<Item = (&'static str, LayerDraft<'a>)>) -> Vec<u8> {
    let layers = layers.into_iter().filter(|(_, draft)| !draft.features.is_empty()).map(|(name, draft)| {
        let mut values = vec![Value::default(); draft.values.len()];
        for (property, idx) in draft.values {
            values[idx as usize] = match property {
                Property::Text(text) => Value { text: Some(text.to_owned()), number: None },
                Property::Number(number) => Value { text: None, number: Some(number) },
            };
        }
        let keys = draft.keys.into_iter().map(str::to_owned).collect();
        let extent = u32::try_from(EXTENT).ok();
        Layer { version: 2, name: name.to_owned(), features: draft.features, keys, values, extent }
    });
    Tile { layers: layers.collect() }.encode_to_vec()
}

/// Commands of the specification: go to, draw to, close.
const MOVE_TO: u32 = 1;
const LINE_TO: u32 = 2;
const CLOSE: u32 = 7;

fn geometry(form: Form, parts: &[Vec<Unit>]) -> Vec<u32> {
    let mut commands = Vec::new();
    let mut at = [0, 0];
    let mut go = |commands: &mut Vec<u32>, to: &Unit| {
        for axis in 0..2 {
            let step = to[axis] - at[axis];
            commands.push(((step << 1) ^ (step >> 31)).cast_unsigned());
        }
        at = *to;
    };
    for part in parts {
        let Some((first, rest)) = part.split_first() else { continue };
        commands.push(MOVE_TO | 1 << 3);
        go(&mut commands, first);
        if form == Form::Point {
            continue;
        }
        commands.push(LINE_TO | number(rest.len()) << 3);
        for corner in rest {
            go(&mut commands, corner);
        }
        if form == Form::Area {
            commands.push(CLOSE | 1 << 3);
        }
    }
    commands
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("a tile has fewer than four billion of anything")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn geometries_are_packed_as_in_the_specification() {
        // Its own examples, 4.3.5.
        assert_eq!(geometry(Form::Point, &[vec![[25, 17]]]), [9, 50, 34]);
        assert_eq!(geometry(Form::Line, &[vec![[2, 2], [2, 10], [10, 10]]]), [9, 4, 4, 18, 0, 16, 16, 0]);
        assert_eq!(
            geometry(Form::Area, &[vec![[3, 6], [8, 12], [20, 34]]]),
            [9, 6, 12, 18, 10, 12, 24, 44, 15]
        );
    }

    #[test]
    fn properties_are_written_once() {
        let mut layer = LayerDraft::default();
        for name in ["A", "B", "A"] {
            layer.add(
                Form::Point,
                &[vec![[1, 1]]],
                &[("name", Property::Text(name)), ("rank", Property::Number(3))],
            );
        }
        let tile =
            Tile::decode(pack([("roads", layer), ("empty", LayerDraft::default())]).as_slice()).unwrap();
        let [layer] = tile.layers.as_slice() else { panic!("{tile:?}") };
        assert_eq!((layer.name.as_str(), layer.keys.len(), layer.values.len()), ("roads", 2, 3));
        assert_eq!(layer.features[0].tags, layer.features[2].tags);
        assert_ne!(layer.features[0].tags, layer.features[1].tags);
    }
}
