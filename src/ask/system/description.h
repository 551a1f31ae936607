#pragma once

// Reads a file that describes a system; foretrace/ask/system.h has an example.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "foretrace/fields.h"

namespace foretrace {

using NamedNumbers = std::map<std::string, double>;

struct SystemTask final : Described {
  void describe(Fields& fields) override;
  std::string name{}, lanes = "1", count = "1", time = "0";
  std::vector<std::string> after{};
};

struct SystemDescription final : Described {
  void describe(Fields& fields) override;  ///< Describes only the settings that are texts.
  std::string title{}, repeat = "1", minimize = "time";
  std::vector<std::string> lets{}, figures{}, subject_to{}, asserts{}, means{}, assert_means{};
  NamedNumbers settings{};
  std::vector<SystemTask> tasks{};
  std::vector<NamedNumbers> rows{};
  std::vector<std::pair<std::string, std::vector<double>>> search{};
};

/// Reads a description. Throws Error with the place.
SystemDescription read_system(const std::string& path);

/// Splits "name = formula". Throws Error if it is not of that form.
std::pair<std::string, std::string> definition_of(const std::string& text);

}  // namespace foretrace
