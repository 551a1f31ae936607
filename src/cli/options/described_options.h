#pragma once

// The options of a command, made from settings: "memory_limit" is --memory-limit, and a setting
// that is given by its place has the name of its value, TRACE.

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/fields.h"
#include "question/files.h"

namespace foretrace {

/// "--memory-limit" for "memory_limit". A name in capitals is not that of a setting, and stays.
std::string option_name(std::string_view setting);

class DescribedOptions {
 public:
  /// Adds an option to the command for each setting. Settings of nested objects are not options.
  /// With `has_nested`, a nested command may be given in place of what is required.
  void add(Described& settings, CLI::App& command, bool has_nested = false);

  /// Writes what the command line gives into the settings, and lists the files that it names.
  /// Throws Error, naming the option, on a bad value or a required setting that is missing.
  void read(Described& settings, QuestionFiles& files) const;

 private:
  struct Option {
    CLI::Option* option = nullptr;
    std::string shown;               ///< "--memory-limit", "TRACE".
    std::string word;                ///< What is given, unless it is a list.
    std::vector<std::string> words;  ///< A list that is given.
    bool is_on = false;              ///< A flag that is given.
  };

  std::string command_;                                 ///< "plan show"
  std::map<std::string, Option, std::less<>> options_;  ///< By the name of the setting.
};

}  // namespace foretrace
