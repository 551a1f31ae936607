#pragma once

// Suggestions for words on the command line that are no command, option or argument: the one that
// was meant, or how to ask for what the word stands for.

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace foretrace {

/// Returns what follows "there is no command 'WORD'": a suggestion, or an empty text. `given` are
/// the arguments behind the word.
std::string command_hint(std::string_view word, const std::vector<std::string>& names,
                         const std::vector<std::string>& given);

/// Returns what follows "there is no option '--WORD'" of `command`, which `value` came after; the
/// value may be empty. `app` is the whole program.
std::string option_hint(const CLI::App& app, const CLI::App& command, const std::string& option,
                        const std::string& value);

/// Returns what follows "'EXTRA' is an unexpected argument" of `command`.
std::string argument_hint(const CLI::App& command, const std::string& extra);

}  // namespace foretrace
