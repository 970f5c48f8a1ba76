//! OpenStreetMap as it is packed.

use std::path::Path;

use osmpbf::{Element, ElementReader};

use crate::StreetsError;
use crate::osm::{Item, Pass};

/// Gives all ways, or all nodes, of a file.
pub(crate) fn read(path: &Path, pass: Pass, take: &mut dyn FnMut(Item<'_>)) -> Result<(), StreetsError> {
    let mut elements_count = 0_u64;
    let mut refs = Vec::new();
    let reader = ElementReader::from_path(path).map_err(|problem| content(path, 0, &problem))?;
    let outcome = reader.for_each(|element| {
        elements_count += 1;
        match (pass, element) {
            (Pass::Ways, Element::Way(way)) => {
                refs.clear();
                refs.extend(way.refs());
                let tags = |key: &str| way.tags().find(|tag| tag.0 == key).map(|tag| tag.1);
                take(Item::Way { id: way.id(), refs: &refs, tags: &tags });
            }
            (Pass::Nodes, Element::DenseNode(node)) => {
                let tags = |key: &str| node.tags().find(|tag| tag.0 == key).map(|tag| tag.1);
                take(Item::Node { id: node.id(), lon: node.lon(), lat: node.lat(), tags: &tags });
            }
            (Pass::Nodes, Element::Node(node)) => {
                let tags = |key: &str| node.tags().find(|tag| tag.0 == key).map(|tag| tag.1);
                take(Item::Node { id: node.id(), lon: node.lon(), lat: node.lat(), tags: &tags });
            }
            (Pass::Ways, Element::Node(_) | Element::DenseNode(_))
            | (Pass::Nodes, Element::Way(_))
            | (_, Element::Relation(_)) => {}
        }
    });
    outcome.map_err(|problem| content(path, elements_count, &problem))
}

fn content(path: &Path, elements_count: u64, problem: &osmpbf::Error) -> StreetsError {
    let place = format!("behind {elements_count} elements");
    StreetsError::Content { path: path.to_owned(), place, problem: problem.to_string() }
}
