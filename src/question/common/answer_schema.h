#pragma once

// Schemas of answers. They come from examples, so that they say what the program writes. An example
// is made from the parts of its type: filled<Answer>() has an answer in which nothing is missing,
// although nobody listed what it consists of.

#include <array>
#include <chrono>
#include <concepts>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "foretrace/notes.h"

namespace foretrace {

struct AllocatorProgram;
struct CheckReport;
struct Curve;
struct DiffReport;
struct LatencyFigure;
struct ServingPoint;
struct SloFigure;
struct SweepReport;
struct Trace;

/// How an example is filled.
struct Filling {
  int depth = 0;  ///< How far parts have parts; below, values are default ones.
  /// Decides what is true, which alternative is taken, what is 0 or empty. nullptr: all is true,
  /// the last alternative, 1 and there.
  std::minstd_rand* chance = nullptr;

  std::size_t pick(std::size_t alternatives) const {
    return chance == nullptr ? alternatives - 1 : (*chance)() / 16 % alternatives;
  }
};

/// Each text of an example, which is also JSON, as some texts have to be.
inline constexpr const char* kFilledText = "{}";
/// Elements of each list of an example, which makes room for positions that are 1.
inline constexpr int kFilledLength = 2;

template <class Value>
Value filled(Filling how);

namespace filling {

/// Becomes any value, as a part of an aggregate.
struct Part {
  Filling how;
  template <class Value>
  operator Value() const {  // NOLINT(google-explicit-constructor): an aggregate takes it.
    return filled<Value>(how);
  }
};

/// Becomes any optional value. A Part would always become what it holds.
struct OptionalPart {
  Filling how;
  template <class Value>
  operator std::optional<Value>() const {  // NOLINT(google-explicit-constructor): the same.
    return filled<std::optional<Value>>(how);
  }
};

template <bool kIsOptional>
using PartOf = std::conditional_t<kIsOptional, OptionalPart, Part>;

template <class Value, std::size_t... kIndex>
constexpr bool takes(std::index_sequence<kIndex...>) {
  return requires { Value{(static_cast<void>(kIndex), Part{})...}; };
}

template <class Value, std::size_t kAt, std::size_t... kIndex>
constexpr bool is_optional(std::index_sequence<kIndex...>) {
  return requires { Value{PartOf<kIndex == kAt>{}...}; };
}

constexpr std::size_t kMostParts = 48;

template <class Value, std::size_t kParts = kMostParts>
constexpr std::size_t count_parts() {
  if constexpr (kParts == 0 || takes<Value>(std::make_index_sequence<kParts>())) {
    return kParts;
  } else {
    return count_parts<Value, kParts - 1>();
  }
}

template <class Value, std::size_t... kIndex>
Value of_parts(Filling how, std::index_sequence<kIndex...> all) {
  return Value{PartOf<is_optional<Value, kIndex>(all)>{how}...};
}

template <class Value>
struct Maker {
  static Value make(Filling how) {
    if constexpr (std::same_as<Value, bool>) {
      return how.pick(2) == 1;
    } else if constexpr (std::is_enum_v<Value>) {
      return static_cast<Value>(how.pick(2));
    } else if constexpr (std::floating_point<Value>) {
      return how.pick(4) == 0 ? 0 : 0.5;
    } else if constexpr (std::integral<Value>) {
      return how.pick(4) == 0 ? 0 : 1;
    } else if constexpr (std::convertible_to<const char*, Value>) {
      return how.pick(4) == 0 ? "" : kFilledText;
    } else if constexpr (std::is_aggregate_v<Value>) {
      static_assert(count_parts<Value>() < kMostParts);
      return of_parts<Value>(how, std::make_index_sequence<count_parts<Value>()>());
    } else {
      return Value();
    }
  }
};

template <class Rep, class Period>
struct Maker<std::chrono::duration<Rep, Period>> {
  static std::chrono::duration<Rep, Period> make(Filling how) {
    return std::chrono::duration<Rep, Period>(how.pick(4) == 0 ? 0 : 1);
  }
};

template <class Value>
struct Maker<std::optional<Value>> {
  static std::optional<Value> make(Filling how) {
    if (how.pick(4) == 0) return {};
    return filled<Value>(how);
  }
};

template <class Value>
struct Maker<std::vector<Value>> {
  static std::vector<Value> make(Filling how) {
    std::vector<Value> all;
    for (int i = 0; i < kFilledLength; ++i) all.push_back(filled<Value>(how));
    return all;
  }
};

template <class Value, std::size_t kSize>
struct Maker<std::array<Value, kSize>> {
  static std::array<Value, kSize> make(Filling how) {
    std::array<Value, kSize> all{};
    for (Value& one : all) one = filled<Value>(how);
    return all;
  }
};

template <class First, class Second>
struct Maker<std::pair<First, Second>> {
  static std::pair<First, Second> make(Filling how) {
    return {filled<First>(how), filled<Second>(how)};
  }
};

template <class Key, class Value>
struct Maker<std::map<Key, Value>> {
  static std::map<Key, Value> make(Filling how) { return {{filled<Key>(how), filled<Value>(how)}}; }
};

template <class... Values>
struct Maker<std::variant<Values...>> {
  static std::variant<Values...> make(Filling how) {
    using Variant = std::variant<Values...>;
    constexpr std::array kMakers = {+[](Filling one) -> Variant { return filled<Values>(one); }...};
    return kMakers[how.pick(sizeof...(Values))](how);
  }
};

template <>
struct Maker<Notes> {
  static Notes make(Filling) {
    Notes notes;
    notes.add(Severity::info, kFilledText, kFilledText);
    return notes;
  }
};

}  // namespace filling

/// Parts that belong together get along: what has a function complete(value) is passed to it.
void complete(AllocatorProgram& program);
void complete(CheckReport& report);
void complete(Curve& curve);
void complete(LatencyFigure& figure);
void complete(ServingPoint& point);
void complete(SloFigure& figure);
void complete(DiffReport& report);
void complete(SweepReport& report);
void complete(Trace& trace);

/// Classes that are not aggregates keep their default value. REQUIRES: has a default value.
template <class Value>
Value filled(Filling how) {
  Value value{};
  if (how.depth > 0)
    value = filling::Maker<Value>::make({.depth = how.depth - 1, .chance = how.chance});
  if constexpr (requires { complete(value); }) complete(value);
  return value;
}

/// Returns the JSON Schema that examples of an answer have in common: what they all have is
/// required, what is null in one may be null.
nlohmann::json schema_of(const std::vector<nlohmann::json>& examples);

/// The schema of the JSON form of answers of this type.
template <class Value>
nlohmann::json answer_schema() {
  constexpr int kMaxDepth = 9, kEach = 24;
  std::vector<nlohmann::json> examples;
  std::minstd_rand chance;
  for (int depth = 0; depth <= kMaxDepth; ++depth) {
    for (int i = 0; i < kEach; ++i)
      examples.emplace_back(
          to_json(filled<Value>({.depth = depth, .chance = i == 0 ? nullptr : &chance})));
  }
  return schema_of(examples);
}

}  // namespace foretrace
