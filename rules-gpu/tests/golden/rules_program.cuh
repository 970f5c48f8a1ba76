#pragma once
constexpr uint32_t RULES_OCCURRENCES_COUNT = 7;
constexpr RulesOccurrence RULES_OCCURRENCES[7] = {
  {0u, 3u, 4u, 4294967295u, 0u, 0u, 1u, 1u, {
    {0u, 2u, 4294967295u, 0u, 0u, 11u, 0u},
    {0u, 0u, 0u, 16u, 1u, 17u, 0u},
    {0u, 1u, 1u, 22u, 2u, 24u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
  }},
  {0u, 3u, 4u, 4294967295u, 0u, 0u, 1u, 1u, {
    {0u, 0u, 4294967295u, 0u, 0u, 35u, 0u},
    {0u, 2u, 0u, 40u, 1u, 41u, 1u},
    {0u, 1u, 1u, 46u, 2u, 48u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
  }},
  {0u, 3u, 4u, 4294967295u, 0u, 0u, 1u, 1u, {
    {0u, 1u, 4294967295u, 0u, 0u, 59u, 0u},
    {0u, 2u, 2u, 64u, 1u, 65u, 1u},
    {0u, 0u, 1u, 70u, 2u, 72u, 1u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
  }},
  {1u, 2u, 0u, 0u, 0u, 83u, 1u, 0u, {
    {1u, 0u, 4294967295u, 0u, 0u, 88u, 0u},
    {1u, 1u, 4294967295u, 0u, 0u, 93u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
  }},
  {1u, 2u, 0u, 1u, 0u, 83u, 1u, 0u, {
    {1u, 1u, 4294967295u, 0u, 0u, 110u, 0u},
    {1u, 0u, 4294967295u, 0u, 0u, 115u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
  }},
  {2u, 2u, 2u, 4294967295u, 0u, 132u, 0u, 1u, {
    {2u, 1u, 4294967295u, 0u, 0u, 134u, 0u},
    {2u, 0u, 3u, 148u, 2u, 150u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
  }},
  {2u, 2u, 2u, 4294967295u, 0u, 132u, 0u, 1u, {
    {2u, 0u, 4294967295u, 0u, 0u, 154u, 0u},
    {2u, 1u, 4u, 158u, 1u, 159u, 1u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
    {0u, 0u, 0u, 0u, 0u, 0u, 0u},
  }},
};
template <>
struct RulesKey<0, 1> {
  MEMBER static uint32_t find([[maybe_unused]] const RulesFrame& known, uint32_t buckets) {
    [[maybe_unused]] const RulesFrame* frame = &known;
    uint64_t hash = 0;
    return rules_bucket_of(hash, RulesCell{frame->bits[0], frame->types[0]}, buckets);
  }
};
template <>
struct RulesKey<0, 2> {
  MEMBER static uint32_t find([[maybe_unused]] const RulesFrame& known, uint32_t buckets) {
    [[maybe_unused]] const RulesFrame* frame = &known;
    uint64_t hash = 0;
    hash = rules_mix_cell(hash, RulesCell{frame->bits[1], frame->types[1]});
    return rules_bucket_of(hash, RulesCell{frame->bits[3], frame->types[3]}, buckets);
  }
};
template <>
struct RulesKey<1, 1> {
  MEMBER static uint32_t find([[maybe_unused]] const RulesFrame& known, uint32_t buckets) {
    [[maybe_unused]] const RulesFrame* frame = &known;
    uint64_t hash = 0;
    return rules_bucket_of(hash, RulesCell{frame->bits[0], frame->types[0]}, buckets);
  }
};
template <>
struct RulesKey<1, 2> {
  MEMBER static uint32_t find([[maybe_unused]] const RulesFrame& known, uint32_t buckets) {
    [[maybe_unused]] const RulesFrame* frame = &known;
    uint64_t hash = 0;
    hash = rules_mix_cell(hash, RulesCell{frame->bits[1], frame->types[1]});
    return rules_bucket_of(hash, RulesCell{frame->bits[3], frame->types[3]}, buckets);
  }
};
template <>
struct RulesKey<2, 1> {
  MEMBER static uint32_t find([[maybe_unused]] const RulesFrame& known, uint32_t buckets) {
    [[maybe_unused]] const RulesFrame* frame = &known;
    uint64_t hash = 0;
    return rules_bucket_of(hash, RulesCell{frame->bits[3], frame->types[3]}, buckets);
  }
};
template <>
struct RulesKey<2, 2> {
  MEMBER static uint32_t find([[maybe_unused]] const RulesFrame& known, uint32_t buckets) {
    [[maybe_unused]] const RulesFrame* frame = &known;
    uint64_t hash = 0;
    hash = rules_mix_cell(hash, RulesCell{frame->bits[0], frame->types[0]});
    return rules_bucket_of(hash, RulesCell{frame->bits[1], frame->types[1]}, buckets);
  }
};
template <>
struct RulesKey<5, 1> {
  MEMBER static uint32_t find([[maybe_unused]] const RulesFrame& known, uint32_t buckets) {
    [[maybe_unused]] const RulesFrame* frame = &known;
    uint64_t hash = 0;
    hash = rules_mix_cell(hash, RulesCell{frame->bits[0], frame->types[0]});
    return rules_bucket_of(hash, RulesCell{0x0ull, 2u}, buckets);
  }
};
template <>
struct RulesKey<6, 1> {
  MEMBER static uint32_t find([[maybe_unused]] const RulesFrame& known, uint32_t buckets) {
    [[maybe_unused]] const RulesFrame* frame = &known;
    uint64_t hash = 0;
    return rules_bucket_of(hash, RulesCell{frame->bits[0], frame->types[0]}, buckets);
  }
};
template <>
struct RulesCode<0> {
  MEMBER static uint32_t run([[maybe_unused]] const RulesStore& store, [[maybe_unused]] uint32_t id,
      [[maybe_unused]] RulesFrame* frame, [[maybe_unused]] const uint32_t* out, [[maybe_unused]] uint32_t* error, bool same) {
    [[maybe_unused]] RulesCell s[20];
    [[maybe_unused]] bool truth = true;
    if (!same) return RAN_NO;
    s[0] = RulesCell{frame->bits[2], frame->types[2]};
    s[1] = RulesCell{frame->bits[4], frame->types[4]};
    if ((*error = rules_binary(0, s[0], s[1], &s[0])) != NO_ERROR) return RAN_ERROR;
    if (s[0].type == NAME) return *error = NOT_A_NUMBER, RAN_ERROR;
    rules_bind(frame, 6, s[0]);
    s[0] = RulesCell{frame->bits[0], frame->types[0]};
    s[1] = RulesCell{frame->bits[3], frame->types[3]};
    s[2] = RulesCell{frame->bits[6], frame->types[6]};
    rules_write(store, 3, out[0], 0, s[0]);
    rules_write(store, 3, out[0], 1, s[1]);
    rules_write(store, 3, out[0], 2, s[2]);
    store.kinds[out[0]] = 0;
    return RAN_YES;
    return RAN_NO;
  }
};
template <>
struct RulesCode<11> {
  MEMBER static uint32_t run([[maybe_unused]] const RulesStore& store, [[maybe_unused]] uint32_t id,
      [[maybe_unused]] RulesFrame* frame, [[maybe_unused]] const uint32_t* out, [[maybe_unused]] uint32_t* error, bool same) {
    [[maybe_unused]] RulesCell s[20];
    [[maybe_unused]] bool truth = true;
    RulesCell a0 = rules_value(store, 3, id, 0);
    RulesCell a1 = rules_value(store, 3, id, 1);
    RulesCell a2 = rules_value(store, 3, id, 2);
    RULES_EARLY(a0.bits);
    RULES_EARLY(a1.bits);
    RULES_EARLY(a2.bits);
    rules_bind(frame, 0, a0);
    rules_bind(frame, 3, a1);
    rules_bind(frame, 5, a2);
    if (!same) return RAN_NO;
    return RAN_YES;
    return RAN_NO;
  }
};
template <>
struct RulesCode<17> {
  MEMBER static uint32_t run([[maybe_unused]] const RulesStore& store, [[maybe_unused]] uint32_t id,
      [[maybe_unused]] RulesFrame* frame, [[maybe_unused]] const uint32_t* out, [[maybe_unused]] uint32_t* error, bool same) {
    [[maybe_unused]] RulesCell s[20];
    [[maybe_unused]] bool truth = true;
    RulesCell a0 = rules_value(store, 3, id, 0);
    RulesCell a1 = rules_value(store, 3, id, 1);
    RulesCell a2 = rules_value(store, 3, id, 2);
    RULES_EARLY(a0.bits);
    RULES_EARLY(a1.bits);
    RULES_EARLY(a2.bits);
    same &= rules_same(a0, RulesCell{frame->bits[0], frame->types[0]});
    rules_bind(frame, 1, a1);
    rules_bind(frame, 2, a2);
    if (!same) return RAN_NO;
    return RAN_YES;
    return RAN_NO;
  }
};
template <>
struct RulesCode<24> {
  MEMBER static uint32_t run([[maybe_unused]] const RulesStore& store, [[maybe_unused]] uint32_t id,
      [[maybe_unused]] RulesFrame* frame, [[maybe_unused]] const uint32_t* out, [[maybe_unused]] uint32_t* error, bool same) {
    [[maybe_unused]] RulesCell s[20];
    [[maybe_unused]] bool truth = true;
    RulesCell a0 = rules_value(store, 3, id, 0);
    RulesCell a1 = rules_value(store, 3, id, 1);
    RulesCell a2 = rules_value(store, 3, id, 2);
    RULES_EARLY(a0.bits);
    RULES_EARLY(a1.bits);
    RULES_EARLY(a2.bits);
    same &= rules_same(a0, RulesCell{frame->bits[1], frame->types[1]});
    same &= rules_same(a1, RulesCell{frame->bits[3], frame->types[3]});
    rules_bind(frame, 4, a2);
    if (!same) return RAN_NO;
    s[0] = RulesCell{frame->bits[5], frame->types[5]};
    s[1] = RulesCell{frame->bits[2], frame->types[2]};
    s[2] = RulesCell{frame->bits[4], frame->types[4]};
    if ((*error = rules_binary(0, s[1], s[2], &s[1])) != NO_ERROR) return RAN_ERROR;
    if ((*error = rules_compare(1, s[0], s[1], &truth)) != NO_ERROR) return RAN_ERROR;
    if (!truth) goto L10;
    return RAN_YES;
  L10:
    return RAN_NO;
  }
};
template <>
struct RulesCode<35> {
  MEMBER static uint32_t run([[maybe_unused]] const RulesStore& store, [[maybe_unused]] uint32_t id,
      [[maybe_unused]] RulesFrame* frame, [[maybe_unused]] const uint32_t* out, [[maybe_unused]] uint32_t* error, bool same) {
    [[maybe_unused]] RulesCell s[20];
    [[maybe_unused]] bool truth = true;
    RulesCell a0 = rules_value(store, 3, id, 0);
    RulesCell a1 = rules_value(store, 3, id, 1);
    RulesCell a2 = rules_value(store, 3, id, 2);
    RULES_EARLY(a0.bits);
    RULES_EARLY(a1.bits);
    RULES_EARLY(a2.bits);
    rules_bind(frame, 0, a0);
    rules_bind(frame, 1, a1);
    rules_bind(frame, 2, a2);
    if (!same) return RAN_NO;
    return RAN_YES;
    return RAN_NO;
  }
};
template <>
struct RulesCode<41> {
  MEMBER static uint32_t run([[maybe_unused]] const RulesStore& store, [[maybe_unused]] uint32_t id,
      [[maybe_unused]] RulesFrame* frame, [[maybe_unused]] const uint32_t* out, [[maybe_unused]] uint32_t* error, bool same) {
    [[maybe_unused]] RulesCell s[20];
    [[maybe_unused]] bool truth = true;
    RulesCell a0 = rules_value(store, 3, id, 0);
    RulesCell a1 = rules_value(store, 3, id, 1);
    RulesCell a2 = rules_value(store, 3, id, 2);
    RULES_EARLY(a0.bits);
    RULES_EARLY(a1.bits);
    RULES_EARLY(a2.bits);
    same &= rules_same(a0, RulesCell{frame->bits[0], frame->types[0]});
    rules_bind(frame, 3, a1);
    rules_bind(frame, 5, a2);
    if (!same) return RAN_NO;
    return RAN_YES;
    return RAN_NO;
  }
};
template <>
struct RulesCode<48> {
  MEMBER static uint32_t run([[maybe_unused]] const RulesStore& store, [[maybe_unused]] uint32_t id,
      [[maybe_unused]] RulesFrame* frame, [[maybe_unused]] const uint32_t* out, [[maybe_unused]] uint32_t* error, bool same) {
    [[maybe_unused]] RulesCell s[20];
    [[maybe_unused]] bool truth = true;
    RulesCell a0 = rules_value(store, 3, id, 0);
    RulesCell a1 = rules_value(store, 3, id, 1);
    RulesCell a2 = rules_value(store, 3, id, 2);
    RULES_EARLY(a0.bits);
    RULES_EARLY(a1.bits);
    RULES_EARLY(a2.bits);
    same &= rules_same(a0, RulesCell{frame->bits[1], frame->types[1]});
    same &= rules_same(a1, RulesCell{frame->bits[3], frame->types[3]});
    rules_bind(frame, 4, a2);
    if (!same) return RAN_NO;
    s[0] = RulesCell{frame->bits[5], frame->types[5]};
    s[1] = RulesCell{frame->bits[2], frame->types[2]};
    s[2] = RulesCell{frame->bits[4], frame->types[4]};
    if ((*error = rules_binary(0, s[1], s[2], &s[1])) != NO_ERROR) return RAN_ERROR;
    if ((*error = rules_compare(1, s[0], s[1], &truth)) != NO_ERROR) return RAN_ERROR;
    if (!truth) goto L10;
    return RAN_YES;
  L10:
    return RAN_NO;
  }
};
template <>
struct RulesCode<59> {
  MEMBER static uint32_t run([[maybe_unused]] const RulesStore& store, [[maybe_unused]] uint32_t id,
      [[maybe_unused]] RulesFrame* frame, [[maybe_unused]] const uint32_t* out, [[maybe_unused]] uint32_t* error, bool same) {
    [[maybe_unused]] RulesCell s[20];
    [[maybe_unused]] bool truth = true;
    RulesCell a0 = rules_value(store, 3, id, 0);
    RulesCell a1 = rules_value(store, 3, id, 1);
    RulesCell a2 = rules_value(store, 3, id, 2);
    RULES_EARLY(a0.bits);
    RULES_EARLY(a1.bits);
    RULES_EARLY(a2.bits);
    rules_bind(frame, 1, a0);
    rules_bind(frame, 3, a1);
    rules_bind(frame, 4, a2);
    if (!same) return RAN_NO;
    return RAN_YES;
    return RAN_NO;
  }
};
template <>
struct RulesCode<65> {
  MEMBER static uint32_t run([[maybe_unused]] const RulesStore& store, [[maybe_unused]] uint32_t id,
      [[maybe_unused]] RulesFrame* frame, [[maybe_unused]] const uint32_t* out, [[maybe_unused]] uint32_t* error, bool same) {
    [[maybe_unused]] RulesCell s[20];
    [[maybe_unused]] bool truth = true;
    RulesCell a0 = rules_value(store, 3, id, 0);
    RulesCell a1 = rules_value(store, 3, id, 1);
    RulesCell a2 = rules_value(store, 3, id, 2);
    RULES_EARLY(a0.bits);
    RULES_EARLY(a1.bits);
    RULES_EARLY(a2.bits);
    rules_bind(frame, 0, a0);
    same &= rules_same(a1, RulesCell{frame->bits[3], frame->types[3]});
    rules_bind(frame, 5, a2);
    if (!same) return RAN_NO;
    return RAN_YES;
    return RAN_NO;
  }
};
template <>
struct RulesCode<72> {
  MEMBER static uint32_t run([[maybe_unused]] const RulesStore& store, [[maybe_unused]] uint32_t id,
      [[maybe_unused]] RulesFrame* frame, [[maybe_unused]] const uint32_t* out, [[maybe_unused]] uint32_t* error, bool same) {
    [[maybe_unused]] RulesCell s[20];
    [[maybe_unused]] bool truth = true;
    RulesCell a0 = rules_value(store, 3, id, 0);
    RulesCell a1 = rules_value(store, 3, id, 1);
    RulesCell a2 = rules_value(store, 3, id, 2);
    RULES_EARLY(a0.bits);
    RULES_EARLY(a1.bits);
    RULES_EARLY(a2.bits);
    same &= rules_same(a0, RulesCell{frame->bits[0], frame->types[0]});
    same &= rules_same(a1, RulesCell{frame->bits[1], frame->types[1]});
    rules_bind(frame, 2, a2);
    if (!same) return RAN_NO;
    s[0] = RulesCell{frame->bits[5], frame->types[5]};
    s[1] = RulesCell{frame->bits[2], frame->types[2]};
    s[2] = RulesCell{frame->bits[4], frame->types[4]};
    if ((*error = rules_binary(0, s[1], s[2], &s[1])) != NO_ERROR) return RAN_ERROR;
    if ((*error = rules_compare(1, s[0], s[1], &truth)) != NO_ERROR) return RAN_ERROR;
    if (!truth) goto L10;
    return RAN_YES;
  L10:
    return RAN_NO;
  }
};
template <>
struct RulesCode<83> {
  MEMBER static uint32_t run([[maybe_unused]] const RulesStore& store, [[maybe_unused]] uint32_t id,
      [[maybe_unused]] RulesFrame* frame, [[maybe_unused]] const uint32_t* out, [[maybe_unused]] uint32_t* error, bool same) {
    [[maybe_unused]] RulesCell s[20];
    [[maybe_unused]] bool truth = true;
    if (!same) return RAN_NO;
    s[0] = RulesCell{frame->bits[0], frame->types[0]};
    s[1] = RulesCell{frame->bits[3], frame->types[3]};
    rules_write(store, 3, out[0], 0, s[0]);
    rules_write(store, 3, out[0], 1, s[1]);
    store.kinds[out[0]] = 2;
    return RAN_YES;
    return RAN_NO;
  }
};
template <>
struct RulesCode<88> {
  MEMBER static uint32_t run([[maybe_unused]] const RulesStore& store, [[maybe_unused]] uint32_t id,
      [[maybe_unused]] RulesFrame* frame, [[maybe_unused]] const uint32_t* out, [[maybe_unused]] uint32_t* error, bool same) {
    [[maybe_unused]] RulesCell s[20];
    [[maybe_unused]] bool truth = true;
    RulesCell a0 = rules_value(store, 3, id, 0);
    RulesCell a1 = rules_value(store, 3, id, 1);
    RulesCell a2 = rules_value(store, 3, id, 2);
    RULES_EARLY(a0.bits);
    RULES_EARLY(a1.bits);
    RULES_EARLY(a2.bits);
    rules_bind(frame, 0, a0);
    rules_bind(frame, 1, a1);
    rules_bind(frame, 2, a2);
    if (!same) return RAN_NO;
    return RAN_YES;
    return RAN_NO;
  }
};
template <>
struct RulesCode<93> {
  MEMBER static uint32_t run([[maybe_unused]] const RulesStore& store, [[maybe_unused]] uint32_t id,
      [[maybe_unused]] RulesFrame* frame, [[maybe_unused]] const uint32_t* out, [[maybe_unused]] uint32_t* error, bool same) {
    [[maybe_unused]] RulesCell s[20];
    [[maybe_unused]] bool truth = true;
    RulesCell a0 = rules_value(store, 3, id, 0);
    RulesCell a1 = rules_value(store, 3, id, 1);
    RulesCell a2 = rules_value(store, 3, id, 2);
    RULES_EARLY(a0.bits);
    RULES_EARLY(a1.bits);
    RULES_EARLY(a2.bits);
    rules_bind(frame, 3, a0);
    rules_bind(frame, 4, a1);
    rules_bind(frame, 5, a2);
    if (!same) return RAN_NO;
    s[0] = RulesCell{frame->bits[0], frame->types[0]};
    s[1] = RulesCell{frame->bits[3], frame->types[3]};
    if ((*error = rules_compare(0, s[0], s[1], &truth)) != NO_ERROR) return RAN_ERROR;
    if (!truth) goto L16;
    s[0] = RulesCell{frame->bits[1], frame->types[1]};
    s[1] = RulesCell{frame->bits[2], frame->types[2]};
    s[2] = RulesCell{frame->bits[4], frame->types[4]};
    s[3] = RulesCell{frame->bits[5], frame->types[5]};
    if ((*error = rules_distance(s[0], s[1], s[2], s[3], &s[0])) != NO_ERROR) return RAN_ERROR;
    s[1] = RulesCell{0x50ull, 0u};
    if ((*error = rules_compare(0, s[0], s[1], &truth)) != NO_ERROR) return RAN_ERROR;
    if (!truth) goto L16;
    return RAN_YES;
  L16:
    return RAN_NO;
  }
};
template <>
struct RulesCode<110> {
  MEMBER static uint32_t run([[maybe_unused]] const RulesStore& store, [[maybe_unused]] uint32_t id,
      [[maybe_unused]] RulesFrame* frame, [[maybe_unused]] const uint32_t* out, [[maybe_unused]] uint32_t* error, bool same) {
    [[maybe_unused]] RulesCell s[20];
    [[maybe_unused]] bool truth = true;
    RulesCell a0 = rules_value(store, 3, id, 0);
    RulesCell a1 = rules_value(store, 3, id, 1);
    RulesCell a2 = rules_value(store, 3, id, 2);
    RULES_EARLY(a0.bits);
    RULES_EARLY(a1.bits);
    RULES_EARLY(a2.bits);
    rules_bind(frame, 3, a0);
    rules_bind(frame, 4, a1);
    rules_bind(frame, 5, a2);
    if (!same) return RAN_NO;
    return RAN_YES;
    return RAN_NO;
  }
};
template <>
struct RulesCode<115> {
  MEMBER static uint32_t run([[maybe_unused]] const RulesStore& store, [[maybe_unused]] uint32_t id,
      [[maybe_unused]] RulesFrame* frame, [[maybe_unused]] const uint32_t* out, [[maybe_unused]] uint32_t* error, bool same) {
    [[maybe_unused]] RulesCell s[20];
    [[maybe_unused]] bool truth = true;
    RulesCell a0 = rules_value(store, 3, id, 0);
    RulesCell a1 = rules_value(store, 3, id, 1);
    RulesCell a2 = rules_value(store, 3, id, 2);
    RULES_EARLY(a0.bits);
    RULES_EARLY(a1.bits);
    RULES_EARLY(a2.bits);
    rules_bind(frame, 0, a0);
    rules_bind(frame, 1, a1);
    rules_bind(frame, 2, a2);
    if (!same) return RAN_NO;
    s[0] = RulesCell{frame->bits[0], frame->types[0]};
    s[1] = RulesCell{frame->bits[3], frame->types[3]};
    if ((*error = rules_compare(0, s[0], s[1], &truth)) != NO_ERROR) return RAN_ERROR;
    if (!truth) goto L16;
    s[0] = RulesCell{frame->bits[1], frame->types[1]};
    s[1] = RulesCell{frame->bits[2], frame->types[2]};
    s[2] = RulesCell{frame->bits[4], frame->types[4]};
    s[3] = RulesCell{frame->bits[5], frame->types[5]};
    if ((*error = rules_distance(s[0], s[1], s[2], s[3], &s[0])) != NO_ERROR) return RAN_ERROR;
    s[1] = RulesCell{0x50ull, 0u};
    if ((*error = rules_compare(0, s[0], s[1], &truth)) != NO_ERROR) return RAN_ERROR;
    if (!truth) goto L16;
    return RAN_YES;
  L16:
    return RAN_NO;
  }
};
template <>
struct RulesCode<132> {
  MEMBER static uint32_t run([[maybe_unused]] const RulesStore& store, [[maybe_unused]] uint32_t id,
      [[maybe_unused]] RulesFrame* frame, [[maybe_unused]] const uint32_t* out, [[maybe_unused]] uint32_t* error, bool same) {
    [[maybe_unused]] RulesCell s[20];
    [[maybe_unused]] bool truth = true;
    if (!same) return RAN_NO;
    return RAN_YES;
    return RAN_NO;
  }
};
template <>
struct RulesCode<134> {
  MEMBER static uint32_t run([[maybe_unused]] const RulesStore& store, [[maybe_unused]] uint32_t id,
      [[maybe_unused]] RulesFrame* frame, [[maybe_unused]] const uint32_t* out, [[maybe_unused]] uint32_t* error, bool same) {
    [[maybe_unused]] RulesCell s[20];
    [[maybe_unused]] bool truth = true;
    RulesCell a0 = rules_value(store, 3, id, 0);
    RulesCell a1 = rules_value(store, 3, id, 1);
    RULES_EARLY(a0.bits);
    RULES_EARLY(a1.bits);
    rules_bind(frame, 0, a0);
    rules_bind(frame, 1, a1);
    if (!same) return RAN_NO;
    s[0] = RulesCell{frame->bits[1], frame->types[1]};
    s[1] = RulesCell{0x3ff8000000000000ull, 1u};
    truth = rules_same(s[0], s[1]) == true;
    if (!truth) goto L7;
    goto L12;
  L7:
    s[0] = RulesCell{frame->bits[0], frame->types[0]};
    s[1] = RulesCell{frame->bits[1], frame->types[1]};
    truth = rules_same(s[0], s[1]) == true;
    if (!truth) goto L12;
    goto L13;
  L12:
    return RAN_YES;
  L13:
    return RAN_NO;
  }
};
template <>
struct RulesCode<150> {
  MEMBER static uint32_t run([[maybe_unused]] const RulesStore& store, [[maybe_unused]] uint32_t id,
      [[maybe_unused]] RulesFrame* frame, [[maybe_unused]] const uint32_t* out, [[maybe_unused]] uint32_t* error, bool same) {
    [[maybe_unused]] RulesCell s[20];
    [[maybe_unused]] bool truth = true;
    RulesCell a0 = rules_value(store, 3, id, 0);
    RulesCell a1 = rules_value(store, 3, id, 1);
    RULES_EARLY(a0.bits);
    RULES_EARLY(a1.bits);
    same &= rules_same(a0, RulesCell{frame->bits[0], frame->types[0]});
    same &= rules_same(a1, RulesCell{0x0ull, 2u});
    if (!same) return RAN_NO;
    return RAN_YES;
    return RAN_NO;
  }
};
template <>
struct RulesCode<154> {
  MEMBER static uint32_t run([[maybe_unused]] const RulesStore& store, [[maybe_unused]] uint32_t id,
      [[maybe_unused]] RulesFrame* frame, [[maybe_unused]] const uint32_t* out, [[maybe_unused]] uint32_t* error, bool same) {
    [[maybe_unused]] RulesCell s[20];
    [[maybe_unused]] bool truth = true;
    RulesCell a0 = rules_value(store, 3, id, 0);
    RulesCell a1 = rules_value(store, 3, id, 1);
    RULES_EARLY(a0.bits);
    RULES_EARLY(a1.bits);
    rules_bind(frame, 0, a0);
    same &= rules_same(a1, RulesCell{0x0ull, 2u});
    if (!same) return RAN_NO;
    return RAN_YES;
    return RAN_NO;
  }
};
template <>
struct RulesCode<159> {
  MEMBER static uint32_t run([[maybe_unused]] const RulesStore& store, [[maybe_unused]] uint32_t id,
      [[maybe_unused]] RulesFrame* frame, [[maybe_unused]] const uint32_t* out, [[maybe_unused]] uint32_t* error, bool same) {
    [[maybe_unused]] RulesCell s[20];
    [[maybe_unused]] bool truth = true;
    RulesCell a0 = rules_value(store, 3, id, 0);
    RulesCell a1 = rules_value(store, 3, id, 1);
    RULES_EARLY(a0.bits);
    RULES_EARLY(a1.bits);
    same &= rules_same(a0, RulesCell{frame->bits[0], frame->types[0]});
    rules_bind(frame, 1, a1);
    if (!same) return RAN_NO;
    s[0] = RulesCell{frame->bits[1], frame->types[1]};
    s[1] = RulesCell{0x3ff8000000000000ull, 1u};
    truth = rules_same(s[0], s[1]) == true;
    if (!truth) goto L7;
    goto L12;
  L7:
    s[0] = RulesCell{frame->bits[0], frame->types[0]};
    s[1] = RulesCell{frame->bits[1], frame->types[1]};
    truth = rules_same(s[0], s[1]) == true;
    if (!truth) goto L12;
    goto L13;
  L12:
    return RAN_YES;
  L13:
    return RAN_NO;
  }
};
