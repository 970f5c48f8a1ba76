#pragma once
// Records of the kernels Loc, Cont and Zip, shared with Rust (`kernels::clcb`).

#include <cstdint>

/// Slots that a task has at most.
constexpr uint32_t CLCB_PAGE = 1024;
/// No filter, in a slot that is free.
constexpr uint32_t NO_FILTER = 0xffffffffu;
/// Words from SubsCount to the first of Subs.
constexpr uint32_t SUBS = 4;
/// Filters that a thread of Loc looks at together in the fast form: all their masks are on the way at once, and then the
/// places of all that are left.
constexpr uint32_t TOGETHER = 8;
/// Subscriptions that a thread of Zip looks at together in the fast form.
constexpr uint32_t ZIPPED = 16;

/// InputPos and InputBF (paper, Fig. 2(b)), with what the launches need to know.
struct alignas(16) ClcbInput {
  /// x, y and, on the globe, z of the event.
  float position[3];
  /// What the rounding of positions may add to a squared distance.
  float slack_sq;
  /// InputBF.
  uint32_t mask;
  /// Where the byte of this run lies in a counter: 0, 8, 16 or 24. In the first run of four all bytes are cleared.
  uint32_t shift;
  uint32_t filters_count;
  uint32_t subscriptions_count;
  uint32_t tasks_count;
  /// Which run it is; never 0.
  uint32_t run;
  uint32_t unused[2];
};
static_assert(sizeof(ClcbInput) == 48, "shared with Rust");

/// Attrs: an attribute's value against one run of the constraints on its name.
struct alignas(16) ClcbTask {
  /// The first slot.
  uint32_t start;
  /// Slots, CLCB_PAGE at most.
  uint32_t count;
  /// The value's code; any value at all when `anything` is set.
  uint32_t code;
  uint32_t anything;
};
static_assert(sizeof(ClcbTask) == 16, "shared with Rust");

/// A constraint in the group of its name: codes from `interval & 0xffff` to `interval >> 16` may satisfy it.
struct ClcbConstraint {
  uint32_t filter;
  uint32_t interval;
};
static_assert(sizeof(ClcbConstraint) == 8, "shared with Rust");

/// A constraint on its way into a slot.
struct ClcbConstraintUpdate {
  uint32_t slot;
  ClcbConstraint constraint;
};
static_assert(sizeof(ClcbConstraintUpdate) == 12, "shared with Rust");

/// A filter on its way into the arrays.
struct ClcbFilterUpdate {
  uint32_t filter;
  uint32_t mask;
  uint32_t owner;
  /// What its counter reaches when all holds.
  uint32_t needed;
  float sq_dist;
  float position[3];
};
static_assert(sizeof(ClcbFilterUpdate) == 32, "shared with Rust");

/// A new centre.
struct ClcbMove {
  uint32_t filter;
  float position[3];
};
static_assert(sizeof(ClcbMove) == 16, "shared with Rust");
