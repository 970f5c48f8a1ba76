#pragma once
// Records of the batched engine's kernels, shared with Rust (`kernels::gpu`), and the arithmetic of its grid.

#include <cmath>
#include <cstdint>

#include "launch.cuh"

/// Levels of the grid; the last is for areas without a bound.
constexpr uint32_t LEVELS = 32;
constexpr uint32_t UNBOUNDED = LEVELS - 1;
/// Cells are so many times narrower along x, where neighbours lie side by side in memory.
constexpr float X_SPLIT = 4.0f;
/// No entry, the end of a list.
constexpr uint32_t NONE = 0xffffffffu;

/// Of an entry's `kind`: how many constraints it has, whether its circle is all of its area, whether it is there.
constexpr uint32_t KIND_CONSTRAINTS = 0xff;
constexpr uint32_t KIND_CIRCLE = 1u << 8;
constexpr uint32_t KIND_LIVE = 1u << 9;

/// Of an event's `flags`: how many attributes it has, whether nothing is certain of it.
constexpr uint32_t EVENT_DOUBT = 1u << 31;
constexpr uint32_t EVENT_ATTRIBUTES = EVENT_DOUBT - 1;

/// Of a constraint's name: whether it may hold without the attribute, whether codes strictly inside decide.
constexpr uint32_t NAME_OPTIONAL = 1u << 31;
constexpr uint32_t NAME_COMPLETE = 1u << 30;
constexpr uint32_t NAME_NUMBER = NAME_COMPLETE - 1;
/// Of an attribute's name: any of several values counts.
constexpr uint32_t NAME_ARRAY = 1u << 31;

/// Of an answer, whose lower half is an event and whose upper half a subscription: that is an entry instead, which the host
/// has to decide.
constexpr uint32_t ANSWER_DOUBT = 1u << 31;

/// Attributes of an event up to which they are in any order; those of an event with more ascend by name.
constexpr uint32_t UNSORTED = 8;

/// Counts that a warp adds up in one go when it sorts.
constexpr uint32_t CHUNK = 1024;

/// A circle: its centre, in units of points, and its reach. A centre that is not a number is nowhere.
struct alignas(16) Place {
  float x, y, z, reach;
};
static_assert(sizeof(Place) == 16, "shared with Rust");

struct alignas(16) GpuEvent {
  float x, y, z;
  /// What the rounding of positions may add to a distance.
  float slack;
  uint32_t mask;
  uint32_t flags;
  /// Its first attribute.
  uint32_t attributes;
  uint32_t unused;
};
static_assert(sizeof(GpuEvent) == 32, "shared with Rust");

/// An attribute of an event.
struct alignas(8) GpuAttribute {
  uint32_t name;
  uint32_t code;
};
static_assert(sizeof(GpuAttribute) == 8, "a word for each, as the encoder writes them");

struct GpuConstraint {
  uint32_t name;
  uint32_t low;
  uint32_t high;
};
static_assert(sizeof(GpuConstraint) == 12, "shared with Rust");

struct GpuConstraintUpdate {
  uint32_t at;
  GpuConstraint constraint;
};
static_assert(sizeof(GpuConstraintUpdate) == 16, "shared with Rust");

/// An entry on its way into the table. Only its link is new unless it is `changed`.
struct GpuEntryUpdate {
  Place place;
  uint32_t entry;
  uint32_t mask;
  uint32_t subscription;
  uint32_t constraints;
  uint32_t kind;
  uint32_t next;
  uint32_t log_at;
  uint32_t changed;
};
static_assert(sizeof(GpuEntryUpdate) == 48, "shared with Rust");

/// The first of the entries that follow a client.
struct GpuHeadUpdate {
  uint32_t client;
  uint32_t head;
};
static_assert(sizeof(GpuHeadUpdate) == 8, "shared with Rust");

struct GpuMove {
  uint32_t client;
  uint32_t log_at;
  float position[3];
};
static_assert(sizeof(GpuMove) == 20, "shared with Rust");

/// How space is cut into cells.
struct GpuLevels {
  /// No area of a level reaches further than its cells are wide.
  float side[LEVELS];
  float inverse[LEVELS];
  uint32_t count;
  /// 2 in the plane, 3 on the globe.
  uint32_t dimensions;
};
static_assert(sizeof(GpuLevels) == 264, "shared with Rust");

/// The number of a cell on one axis. It never falls as the coordinate rises, which is all that searches rely on.
INLINE int32_t cell_of(float coordinate, float inverse) { return int32_t(floorf(coordinate * inverse)); }

/// Where a row of cells begins among the buckets; cell x of the row lies x further on.
INLINE uint32_t row_bucket(uint32_t level, int32_t y, int32_t z) {
  uint32_t hash = uint32_t(y) * 0x9e3779b1u ^ uint32_t(z) * 0x85ebca77u ^ (level + 1) * 0xc2b2ae3du;
  hash = (hash ^ hash >> 15) * 0x2c1b3c6du;
  hash = (hash ^ hash >> 12) * 0x297a2d39u;
  return hash ^ hash >> 15;
}

/// The level of an area by its reach.
INLINE uint32_t level_of(float reach, const GpuLevels& levels) {
  for (uint32_t level = 0; level < levels.count; level++) {
    if (reach * 1.0001f <= levels.side[level]) return level;
  }
  return UNBOUNDED;
}

/// The bucket of an area; `level` is told, too.
INLINE uint32_t bucket_of(const Place& place, const GpuLevels& levels, uint32_t* level) {
  *level = level_of(place.reach, levels);
  if (*level == UNBOUNDED) return row_bucket(UNBOUNDED, 0, 0);
  const float inverse = levels.inverse[*level];
  const int32_t z = levels.dimensions == 3 ? cell_of(place.z, inverse) : 0;
  return row_bucket(*level, cell_of(place.y, inverse), z) + uint32_t(cell_of(place.x, inverse * X_SPLIT));
}

/// How far a coordinate is from the cells of a number, at least; 0 in between.
INLINE float beside_cell(float coordinate, int32_t cell, float side, float slack) {
  const float low = float(cell) * side;
  const float beside = fmaxf(low - coordinate, coordinate - (low + side));
  // Where a cell ends is known to a few roundings only.
  return fmaxf(beside - 4.0f * slack - side * 1e-5f, 0.0f);
}

/// Cells of a level around an event, as rows along x.
struct Rows {
  int32_t y, z;
  uint32_t ys, count;
  float reach;
};

INLINE Rows rows_around(const GpuEvent& event, const GpuLevels& levels, uint32_t level) {
  const float inverse = levels.inverse[level];
  Rows rows;
  rows.reach = levels.side[level] + event.slack;
  rows.y = cell_of(event.y - rows.reach, inverse);
  rows.ys = uint32_t(cell_of(event.y + rows.reach, inverse) - rows.y + 1);
  rows.z = 0;
  rows.count = rows.ys;
  if (levels.dimensions == 3) {
    rows.z = cell_of(event.z - rows.reach, inverse);
    rows.count *= uint32_t(cell_of(event.z + rows.reach, inverse) - rows.z + 1);
  }
  return rows;
}

/// The buckets of one row that may hold the event: the first, and how many; none when the row is too far off.
INLINE uint32_t row_buckets(const GpuEvent& event, const GpuLevels& levels, uint32_t level, const Rows& rows,
                            uint32_t row, uint32_t* first) {
  const int32_t y = rows.y + int32_t(row % rows.ys);
  const int32_t z = rows.z + int32_t(row / rows.ys);
  const float side = levels.side[level];
  float beside = beside_cell(event.y, y, side, event.slack);
  float square = beside * beside;
  if (levels.dimensions == 3) {
    beside = beside_cell(event.z, z, side, event.slack);
    square += beside * beside;
  }
  const float left = rows.reach * rows.reach - square;
  if (left < 0.0f) return 0;
  const float reach = sqrtf(left) * 1.00001f + event.slack;
  const float inverse = levels.inverse[level] * X_SPLIT;
  const int32_t x = cell_of(event.x - reach, inverse);
  *first = row_bucket(level, y, z) + uint32_t(x);
  return uint32_t(cell_of(event.x + reach, inverse) - x + 1);
}

enum class Verdict : uint32_t { No, Maybe, Yes };

/// Whether an event at this distance lies in the area: `Maybe` where floats cannot tell.
INLINE Verdict location_verdict(const GpuEvent& event, const Place& place) {
  const float dx = event.x - place.x, dy = event.y - place.y, dz = event.z - place.z;
  const float distance = sqrtf(dx * dx + dy * dy + dz * dz);
  if (!(distance <= place.reach * 1.000001f + event.slack)) return Verdict::No;
  return distance <= place.reach * 0.999999f - event.slack ? Verdict::Yes : Verdict::Maybe;
}

/// Where the attribute of a name stands among an event's, or `count`.
INLINE uint32_t attribute_at(const GpuAttribute* attributes, uint32_t count, uint32_t name) {
  uint32_t low = 0, high = count;
  if (count <= UNSORTED) {
    while (low < count && (attributes[low].name & NAME_NUMBER) != name) low++;
    return low;
  }
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if ((attributes[middle].name & NAME_NUMBER) < name) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < count && (attributes[low].name & NAME_NUMBER) == name ? low : count;
}

/// Whether an attribute satisfies a constraint on its name.
INLINE Verdict value_verdict(const GpuConstraint& constraint, const GpuAttribute* attributes, uint32_t count) {
  const uint32_t at = attribute_at(attributes, count, constraint.name & NAME_NUMBER);
  if (at == count) return constraint.name & NAME_OPTIONAL ? Verdict::Yes : Verdict::No;
  if (attributes[at].name & NAME_ARRAY) return Verdict::Maybe;
  const uint32_t code = attributes[at].code;
  if (code < constraint.low || code > constraint.high) return Verdict::No;
  const bool inside = code > constraint.low && code < constraint.high;
  return inside && constraint.name & NAME_COMPLETE ? Verdict::Yes : Verdict::Maybe;
}
