#include <fmt/core.h>

#include "foretrace/error.h"
#include "import/torch_memory/pickle.h"

namespace foretrace {

namespace {

/// Limits of the integers that fit into the value itself: 60 bits.
constexpr std::int64_t kMaxInPlace = (std::int64_t{1} << 59) - 1;
constexpr std::int64_t kMinInPlace = -(std::int64_t{1} << 59);

/// Limit on the memory of the values, as a multiple of the file's size. Real snapshots need up to
/// 2.5 times; below kHarmless bytes there is no limit.
constexpr std::size_t kMaxGrowth = 8;
constexpr std::size_t kHarmless = std::size_t{64} << 20;

/// Limit on the keys that find() searches. No dict that the reader needs has more.
constexpr std::size_t kMaxSharedKeys = 256;

}  // namespace

std::optional<std::int64_t> PlainData::integer(PlainValue value) const {
  switch (value.kind()) {
    case PlainKind::integer:
      return static_cast<std::int64_t>(value.bits) >> 4;
    case PlainKind::big_integer:
      return integers_[value.index()];
    case PlainKind::boolean:
      return static_cast<std::int64_t>(value.index());
    default:
      return {};
  }
}

std::string_view PlainData::text(PlainValue value) const {
  return value.kind() == PlainKind::text ? texts_[value.index()] : std::string_view();
}

std::string_view PlainData::bytes(PlainValue value) const {
  return value.kind() == PlainKind::bytes ? texts_[value.index()] : std::string_view();
}

std::span<const PlainValue> PlainData::items(PlainValue value) const {
  if (!value.is_list() && !value.is_dict()) return {};
  return containers_[value.index()];
}

PlainValue PlainData::find(PlainValue dict, std::string_view key) const {
  if (!dict.is_dict()) return {};
  const auto all = items(dict);
  const std::size_t least = all.size() > 2 * kMaxSharedKeys ? all.size() - 2 * kMaxSharedKeys : 0;
  // If a key occurs twice, the last one counts, as in Python.
  for (std::size_t i = all.size(); i >= least + 2; i -= 2) {
    if (all[i - 2].kind() == PlainKind::text && text(all[i - 2]) == key) return all[i - 1];
  }
  return {};
}

PlainValue PlainData::make_integer(std::int64_t value) {
  if (value >= kMinInPlace && value <= kMaxInPlace)
    return make(PlainKind::integer, static_cast<std::uint64_t>(value));
  integers_.push_back(value);
  return make(PlainKind::big_integer, integers_.size() - 1);
}

PlainValue PlainData::make_real(double value) {
  reals_.push_back(value);
  return make(PlainKind::real, reals_.size() - 1);
}

PlainValue PlainData::make_text(std::string_view text, PlainKind kind) {
  texts_.push_back(text);
  return make(kind, texts_.size() - 1);
}

PlainValue PlainData::make_container(PlainKind kind) {
  containers_.emplace_back();
  return make(kind, containers_.size() - 1);
}

void PlainData::append(PlainValue container, std::span<const PlainValue> elements) {
  auto& items = containers_[container.index()];
  items.insert(items.end(), elements.begin(), elements.end());
  elements_ += elements.size();
}

void PlainData::check_size(std::size_t size) const {
  constexpr std::size_t kBookkeeping = 16;  // Overhead of malloc() for each container, in bytes.
  const std::size_t taken = containers_.size() * (sizeof(containers_[0]) + kBookkeeping) +
                            elements_ * sizeof(PlainValue) + texts_.size() * sizeof(texts_[0]) +
                            (reals_.size() + integers_.size()) * sizeof(double);
  if (taken <= kHarmless || taken / kMaxGrowth <= size) return;
  throw TraceError(
      fmt::format("must be a snapshot, but consists of more and smaller values than any snapshot "
                  "({} lists and dicts in {} bytes)",
                  containers_.size(), size));
}

std::string_view PlainData::keep(std::string bytes) {
  bytes_ = std::make_unique<const std::string>(std::move(bytes));
  return *bytes_;
}

}  // namespace foretrace
