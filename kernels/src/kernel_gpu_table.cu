// The batched engine's table of entries: changes and moves go into it, and into the log of what changed since the
// base was sorted.

#include "gpu.cuh"
#include "launch.cuh"

/// Writes one entry of the log, which is a ring.
DEVICE void log_entry(uint32_t at, uint32_t log_mask, const Place& place, uint32_t mask, uint32_t entry,
                      uint32_t stamp, Place* log_places, uint32_t* log_masks, uint32_t* log_entries,
                      uint32_t* log_stamps) {
  const uint32_t slot = at & log_mask;
  log_places[slot] = place;
  log_masks[slot] = mask;
  log_entries[slot] = entry;
  log_stamps[slot] = stamp;
}

/// Writes entries into the table: a thread an update, each entry at most once. `logging` is 0 where the base is
/// sorted anew before anything is matched.
/// updates [count] in; places, masks, subscriptions, constraints, kinds, stamps, next [entries] out; log_* [ring] out
KERNEL gpu_put_entries(const GpuEntryUpdate* updates, uint32_t count, uint32_t stamp, uint32_t logging,
                       Place* places, uint32_t* masks, uint32_t* subscriptions, uint32_t* constraints,
                       uint32_t* kinds, uint32_t* stamps, uint32_t* next, uint32_t log_mask, Place* log_places,
                       uint32_t* log_masks, uint32_t* log_entries, uint32_t* log_stamps) {
  const uint32_t index = thread_index();
  if (index >= count) return;
  const GpuEntryUpdate update = updates[index];
  const uint32_t entry = update.entry;
  next[entry] = update.next;
  if (!update.changed) return;
  places[entry] = update.place;
  masks[entry] = update.mask;
  subscriptions[entry] = update.subscription;
  constraints[entry] = update.constraints;
  kinds[entry] = update.kind;
  stamps[entry] = stamp;
  if (logging && update.kind & KIND_LIVE) {
    log_entry(update.log_at, log_mask, update.place, update.mask, entry, stamp, log_places, log_masks,
              log_entries, log_stamps);
  }
}
HOST_ENTRY(gpu_put_entries)

/// Writes constraints: a thread an update, each place at most once.
/// updates [count] in; constraints [places] out
KERNEL gpu_put_constraints(const GpuConstraintUpdate* updates, uint32_t count, GpuConstraint* constraints) {
  const uint32_t index = thread_index();
  if (index >= count) return;
  constraints[updates[index].at] = updates[index].constraint;
}
HOST_ENTRY(gpu_put_constraints)

/// Writes where the lists of clients begin: a thread an update, each client at most once.
/// updates [count] in; heads [clients] out
KERNEL gpu_put_heads(const GpuHeadUpdate* updates, uint32_t count, uint32_t* heads) {
  const uint32_t index = thread_index();
  if (index >= count) return;
  heads[updates[index].client] = updates[index].head;
}
HOST_ENTRY(gpu_put_heads)

/// Moves clients: a thread a client, each at most once, writes the centre of every entry that follows it.
/// moves [count], heads [clients], next, masks [entries] in; places, stamps [entries] out; log_* [ring] out
KERNEL gpu_move_clients(const GpuMove* moves, uint32_t count, uint32_t stamp, uint32_t logging,
                        const uint32_t* heads, const uint32_t* next, const uint32_t* masks, Place* places,
                        uint32_t* stamps, uint32_t log_mask, Place* log_places, uint32_t* log_masks,
                        uint32_t* log_entries, uint32_t* log_stamps) {
  const uint32_t index = thread_index();
  if (index >= count) return;
  const GpuMove move = moves[index];
  uint32_t at = move.log_at;
  for (uint32_t entry = heads[move.client]; entry != NONE; entry = next[entry]) {
    const Place place = {move.position[0], move.position[1], move.position[2], places[entry].reach};
    places[entry] = place;
    stamps[entry] = stamp;
    if (logging) {
      log_entry(at, log_mask, place, masks[entry], entry, stamp, log_places, log_masks, log_entries,
                log_stamps);
      at++;
    }
  }
}
HOST_ENTRY(gpu_move_clients)
