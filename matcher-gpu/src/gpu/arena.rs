//! Where the constraints of entries lie in their array on the device: neighbours for each entry.

/// Gives places out, by how many there are to be in a row.
#[derive(Debug, Default)]
pub(super) struct Arena {
    /// Free places, by length.
    free: Vec<Vec<u32>>,
    end: u32,
}

impl Arena {
    /// One past the last place given out.
    pub(super) fn end(&self) -> usize {
        self.end as usize
    }

    /// Whether `count` further ones are sure to have places.
    pub(super) fn has_room(&self, count: usize) -> bool {
        (u32::MAX - self.end) as usize >= count
    }

    /// The first of `len` places in a row; `None` when 32-bit numbers are used up.
    pub(super) fn acquire(&mut self, len: usize) -> Option<u32> {
        if len == 0 {
            return Some(0);
        }
        if let Some(place) = self.free.get_mut(len).and_then(Vec::pop) {
            return Some(place);
        }
        let place = self.end;
        self.end = place.checked_add(u32::try_from(len).ok()?)?;
        Some(place)
    }

    /// Gives places back.
    pub(super) fn release(&mut self, place: u32, len: usize) {
        if len == 0 {
            return;
        }
        if self.free.len() <= len {
            self.free.resize(len + 1, Vec::new());
        }
        self.free[len].push(place);
    }

    /// Bytes of the host's memory.
    pub(super) fn bytes(&self) -> usize {
        self.free.iter().map(|places| places.capacity() * size_of::<u32>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_out_once_and_again_when_they_are_free() {
        let mut arena = Arena::default();
        let held: Vec<(u32, usize)> =
            [3, 1, 32, 3, 0].into_iter().map(|len| (arena.acquire(len).unwrap(), len)).collect();
        let mut all: Vec<u32> =
            held.iter().flat_map(|(place, len)| *place..*place + u32::try_from(*len).unwrap()).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!((all.len(), arena.end()), (39, 39));
        held.iter().for_each(|(place, len)| arena.release(*place, *len));
        assert_eq!(arena.acquire(32), Some(held[2].0));
        assert!([held[0].0, held[3].0].contains(&arena.acquire(3).unwrap()));
        assert_eq!(arena.end(), 39);
    }
}
