#pragma once

// The tools that agents can call. Each tool is a class that describes its settings once, for the
// JSON Schema and for reading arguments, and that returns the command lines that answer the call.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/fields.h"

namespace foretrace {

/// The words of a command. Texts from an agent come after "--", or after the "=" of an option, so
/// that none of them is read as an option.
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
