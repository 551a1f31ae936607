#include "document/words/facts.h"

#include "base/json_text.h"
#include "base/shown.h"
#include "document/words/csv_text.h"

namespace foretrace {

Facts& Facts::detail(const std::string& key, Json value) {
  if (has_them_) json_[key] = std::move(value);
  return *this;
}

Facts& Facts::column(const std::string& key, const Json& value) {
  keys_.push_back(key);
  cells_.push_back(has_them_ ? cell_of(value) : "");
  return *this;
}

Facts& Facts::object(const std::string& key, const std::string& prefix, const Facts& inner) {
  for (std::size_t i = 0; i < inner.keys_.size(); ++i)
    column(prefix + inner.keys_[i], inner.cells_[i]);
  return detail(key, inner.json_);
}

Facts& Facts::when(bool has_them) {
  has_them_ = has_them;
  return *this;
}

std::string Facts::line() const { return csv_line(cells_); }

std::string Facts::heading() const { return csv_line(keys_); }

template <class Json>
std::string cell_of(const Json& value) {
  if (value.is_null()) return {};
  if (value.is_number_float()) return to_text(value.template get<double>());
  return value.is_string() ? value.template get<std::string>() : json_line(value);
}

template std::string cell_of(const nlohmann::json& value);
template std::string cell_of(const nlohmann::ordered_json& value);

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    const bool is_quoted = cell.find_first_of(",\"") != cell.npos;
    line += (is_quoted ? csv_text(cell) : csv_cell(cell)) + ',';
  }
  line.back() = '\n';
  return line;
}

}  // namespace foretrace
