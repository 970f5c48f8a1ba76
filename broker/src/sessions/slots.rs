//! Values under small numbers, which are reused.

/// The values, and the numbers that are free.
pub(super) struct Slots<T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slots<T> {
    pub(super) const fn new() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }

    /// A number to [`put`](Self::put) something under; `None` when all are in use.
    pub(super) fn reserve(&mut self) -> Option<u32> {
        if let Some(id) = self.free.pop() {
            return Some(id);
        }
        let id = u32::try_from(self.values.len()).ok()?;
        self.values.push(None);
        Some(id)
    }

    pub(super) fn put(&mut self, id: u32, value: T) {
        self.values[id as usize] = Some(value);
    }

    pub(super) fn insert(&mut self, value: T) -> Option<u32> {
        let id = self.reserve()?;
        self.put(id, value);
        Some(id)
    }

    pub(super) fn get(&self, id: u32) -> Option<&T> {
        self.values.get(id as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.values.get_mut(id as usize)?.as_mut()
    }

    /// One more than the greatest number that there ever was.
    pub(super) fn slots_count(&self) -> u32 {
        u32::try_from(self.values.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter().flatten()
    }

    /// The values with their numbers, of `count` numbers from `from` on; `None` where there are no numbers any more.
    pub(super) fn numbered(&self, from: u32, count: usize) -> Option<impl Iterator<Item = (u32, &T)>> {
        let rest = self.values.get(from as usize..).filter(|rest| !rest.is_empty())?;
        Some(
            (from..)
                .zip(&rest[..count.min(rest.len())])
                .filter_map(|(id, value)| Some((id, value.as_ref()?))),
        )
    }

    pub(super) fn remove(&mut self, id: u32) -> Option<T> {
        let value = self.values.get_mut(id as usize)?.take();
        self.free.push(id);
        value
    }
}
