#pragma once

// One row of a table of measured steps, and the layout and model that it describes.

#include <charconv>
#include <cmath>
#include <fmt/core.h>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/wording.h"
#include "foretrace/error.h"
#include "price/price.h"

namespace foretrace {

constexpr double kGiga = 1e9;

/// Cells by our names of the columns; empty and "n/a" cells count as missing.
class TableRow {
 public:
  TableRow(const std::vector<std::string>& heading, std::vector<std::string> cells) {
    for (std::size_t i = 0; i < heading.size() && i < cells.size(); ++i) {
      if (heading[i].empty() || cells[i].empty() || cells[i] == "n/a") continue;
      cells_.emplace(heading[i], std::move(cells[i]));
    }
  }

  bool has(std::string_view name) const { return cells_.contains(name); }
  std::string text(std::string_view name) const {
    const auto found = cells_.find(name);
    return found == cells_.end() ? "" : found->second;
  }
  std::string lower(std::string_view name) const { return lower_case(text(name)); }
  std::optional<double> number(std::string_view name) const {
    if (!has(name)) return std::nullopt;
    const std::string value = text(name);
    double read = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), read);
    if (error != std::errc())
      throw Error(fmt::format("{}: must be a number, got '{}'", name, value));
    const std::string_view rest(end, static_cast<std::size_t>(value.data() + value.size() - end));
    if (rest == "B") return read * kGiga;
    if (!rest.empty()) throw Error(fmt::format("{}: must be a number, got '{}'", name, value));
    return read;
  }
  void read(std::string_view name, std::int64_t& value) const {
    if (const auto read = number(name)) value = std::llround(*read);
  }

 private:
  std::map<std::string, std::string, std::less<>> cells_;
};

/// Overwrites the settings of `layout` that the row states. Returns whether one was guessed.
bool read_layout(const TableRow& row, Layout& layout);

/// The model of a row, as find_workload() takes it. `usual` is for rows that name no model. Throws
/// Error if the model is unknown and has no shape.
std::string workload_text(const TableRow& row, const std::string& usual, const Layout& layout);

/// The first release in a variant ("26.08 NeMo Container"), in months; 0 if there is none.
double release_of(const std::string& variant);

}  // namespace foretrace
