#pragma once

// The questions of agents. Each tool is a struct with settings, from which its schema and its
// reading are made, and which says the command lines that answer it.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/fields.h"

namespace foretrace {

/// The words of a command. What an agent names goes behind "--", or behind the "=" of an option, so
/// that no text of it is taken for an option.
using CommandLine = std::vector<std::string>;

class Tool : public Described {
 public:
  virtual std::vector<CommandLine> command_lines() const = 0;
  /// The settings that must be given.
  virtual std::vector<std::string> required() const { return {}; }
};

struct ToolEntry {
  std::string_view name, summary;
  std::unique_ptr<Tool> (*make)();
};

const std::vector<ToolEntry>& tools();

}  // namespace foretrace
