#pragma once

// Any transform with any settings: the settings that describe() names, each with a value that is
// ordinary, at a limit, or beyond it.

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/fields/settings.h"
#include "foretrace/transform.h"
#include "fuzz/supply.h"

namespace foretrace {

/// Gives settings other values, within their limits or not. Half of the texts come from `words`.
class DrawnSettings final : public Fields {
 public:
  DrawnSettings(Supply& supply, std::span<const std::string> words)
      : supply_(supply), words_(words) {}

  void visit(const Setting& setting) override {
    if (supply_.below(4) != 3) return;
    setting_ = &setting;
    std::visit([&](auto* value) { change(*value); }, setting.value);
  }

 private:
  void change(bool& value) { value = !value; }
  void change(std::int64_t& value) {
    constexpr std::int64_t kValues[] = {0, 1, 2, 3, 4, 8, 16, 100, -1};
    value = supply_.one_of(kValues);
  }
  void change(double& value) {
    constexpr double kValues[] = {0, 0.5, 1, 2, 0.1, 1e-9, 1e3, -1};
    value = supply_.one_of(kValues);
  }
  void change(std::string& value) {
    if (setting_->options != nullptr) {
      value = (*setting_->options)[supply_.next() % setting_->options->size()];
      return;
    }
    if (!words_.empty() && supply_.below(2) == 0) {
      value = words_[(supply_.next() * std::size_t{256} + supply_.next()) % words_.size()];
      return;
    }
    constexpr const char* kValues[] = {"",
                                       "gemm",
                                       "/gemm|relu/",
                                       "0-2",
                                       "1",
                                       "stream 7",
                                       "kernel",
                                       "gemm ; relu => fused : max",
                                       "main",
                                       "a",
                                       "gemm => nothing",
                                       "/conv/ => fast : 0.5 * sum",
                                       "6:1000",
                                       "V100-16GB",
                                       "decode=6@100/s/core",
                                       "conv ; batch_norm ; relu => cbr : 2us"};
    value = supply_.one_of(kValues);
  }
  void change(std::vector<std::string>& values) {
    values.clear();
    for (std::uint32_t i = supply_.below(4); i > 0; --i) change(values.emplace_back());
  }
  void change(Nanoseconds& value) {
    constexpr std::int64_t kValues[] = {0, 1, 1000, 25'000, 1'000'000, 3'600'000'000'000, -1000};
    value = Nanoseconds(supply_.one_of(kValues));
  }
  void change(Bytes& value) {
    constexpr std::int64_t kValues[] = {
        0, 1, 511, 1 << 20, 8 << 20, 1 << 30, std::int64_t{1} << 44, INT64_MAX};
    value = Bytes{supply_.one_of(kValues)};
  }
  void change(Bandwidth& value) { change(value.bytes_per_second); }
  void change(Throughput& value) { change(value.flops_per_second); }
  template <class Value>
  void change(std::optional<Value>& value) {
    change(value.emplace());
  }
  void change(Described& value) {
    const Setting* const outer = setting_;
    value.describe(*this);
    setting_ = outer;
  }

  Supply& supply_;
  std::span<const std::string> words_;
  const Setting* setting_ = nullptr;
};

struct DrawnTransform {
  std::string_view name;
  nlohmann::json settings;
  std::unique_ptr<Transform> transform;
};

/// Throws Error if a value is beyond its limit.
inline DrawnTransform drawn_transform(Supply& supply, std::span<const std::string> words = {}) {
  const TransformEntry& entry = transforms()[supply.next() % transforms().size()];
  const std::unique_ptr<Transform> drawn = entry.make();
  DrawnSettings settings(supply, words);
  drawn->describe(settings);
  nlohmann::json json = write_json(*drawn);
  json["use"] = entry.name;
  std::unique_ptr<Transform> transform = read_transform(json);
  return {entry.name, std::move(json), std::move(transform)};
}

}  // namespace foretrace
