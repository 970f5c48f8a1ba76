//! Networks that are made up, in the plane: for tests, and for worlds without a map.

use matcher::geo::World;

use crate::country::Country;
use crate::draft::{Draft, DraftEdge, DraftNode, Lane};
use crate::network::{Census, Class, NONE, Network};

impl Network {
    /// Streets like a chessboard, both ways, one lane each, 50 km/h: `rows` times `columns` crossings, `block_m` apart, the first
    /// at [0, 0]. Rows are named `Row 0` and on, from the south, columns `Column 0` and on. At least two crossings are made, and
    /// blocks of at least a metre.
    #[must_use]
    pub fn grid(rows: u32, columns: u32, block_m: f64) -> Self {
        let (rows, columns) = (rows.clamp(1, 10_000), columns.clamp(1, 10_000));
        let columns = if rows == 1 { columns.max(2) } else { columns };
        let block_m = if block_m.is_finite() { block_m.clamp(1.0, 100_000.0) } else { 100.0 };
        let at = |row: u32, column: u32| [f64::from(column) * block_m, f64::from(row) * block_m];
        let mut edges = Vec::new();
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
            let from = row * columns + column;
            if column + 1 < columns {
                edges.push(street(from, from + 1, vec![at(row, column), at(row, column + 1)], row));
            }
            if row + 1 < rows {
                edges.push(street(
                    from,
                    from + columns,
                    vec![at(row, column), at(row + 1, column)],
                    rows + column,
                ));
            }
        }
        let nodes = (0..rows * columns).map(|node| DraftNode {
            id: i64::from(node),
            at: at(node / columns, node % columns),
            has_signals: false,
        });
        let names = (0..rows).map(|row| format!("Row {row}"));
        let names = names.chain((0..columns).map(|column| format!("Column {column}"))).collect();
        made(nodes.collect(), edges, names)
    }

    /// A one-way road that comes back to where it began, `length_m` long (at least 100 m), one lane, in `arcs` pieces of the same
    /// length (at least 2): what traffic is studied on.
    #[must_use]
    pub fn ring(length_m: f64, arcs: u32, limit_ms: f32) -> Self {
        let length_m = if length_m.is_finite() { length_m.clamp(100.0, 1e6) } else { 1000.0 };
        let limit_ms = if limit_ms.is_finite() { limit_ms.clamp(1.0, 70.0) } else { 14.0 };
        let arcs = arcs.clamp(2, 100_000);
        let radius_m = length_m / std::f64::consts::TAU;
        let at = |node: u32| {
            let angle = f64::from(node % arcs) / f64::from(arcs) * std::f64::consts::TAU;
            [radius_m * angle.cos(), radius_m * angle.sin()]
        };
        let edges = (0..arcs).map(|node| DraftEdge {
            length_m: Some(length_m / f64::from(arcs)),
            forward: Some(Lane { limit_ms, lanes: 1 }),
            backward: None,
            ..street(node, (node + 1) % arcs, vec![at(node), at(node + 1)], NONE)
        });
        let nodes = (0..arcs).map(|node| DraftNode { id: i64::from(node), at: at(node), has_signals: false });
        made(nodes.collect(), edges.collect(), Vec::new())
    }

    /// A country of cities and motorways as a network. Takes about 300 bytes a node; [`Country`] takes none.
    #[must_use]
    pub fn country(country: &Country) -> Self {
        let (mut edges, mut arcs) = (Vec::new(), Vec::new());
        for from in 0..country.nodes_count() {
            arcs.clear();
            country.arcs(from, &mut arcs);
            for arc in arcs.iter().filter(|arc| arc.to > from) {
                let lane = Some(Lane { limit_ms: arc.limit_ms, lanes: arc.lanes });
                edges.push(DraftEdge {
                    forward: lane,
                    backward: lane,
                    class: arc.class,
                    ..street(from, arc.to, vec![country.node_at(from), country.node_at(arc.to)], NONE)
                });
            }
        }
        let nodes = (0..country.nodes_count()).map(|node| DraftNode {
            id: i64::from(node),
            at: country.node_at(node),
            has_signals: false,
        });
        made(nodes.collect(), edges, Vec::new())
    }
}

fn street(from: u32, to: u32, shape: Vec<[f64; 2]>, name: u32) -> DraftEdge {
    let lane = Some(Lane { limit_ms: 50.0 / 3.6, lanes: 1 });
    DraftEdge {
        from,
        to,
        length_m: None,
        shape,
        forward: lane,
        backward: lane,
        class: Class::Secondary,
        name,
    }
}

fn made(nodes: Vec<DraftNode>, edges: Vec<DraftEdge>, names: Vec<String>) -> Network {
    let draft = Draft { world: World::Planar, nodes, edges, names, census: Census::default() };
    draft.into_network(true).ok().flatten().expect("what is made here is small, and connected")
}
