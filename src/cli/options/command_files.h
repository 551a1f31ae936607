#pragma once

// Which files a command reads and which it writes, according to its command line, so that no output
// ever replaces an input or another output. Commands need no code for this: the values of an option
// whose type is OUT (names_output()) are outputs, and the value of any other option is an input if
// it names a file. Inputs are also
//
//     files in a folder and its subfolders          ranks/  ranks/node0/
//     archives and databases with one part named    runs.tar.gz:rank0.json
//     files named by the settings of a step         --with replace:donor=other.json
//     files named by a JSON input                   {"trace": "../x.json"}
//                                                   {"extends": "base.json"}

#include <cstddef>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace foretrace {

/// Marks an option whose values are paths of files that the command writes. Returns the option.
CLI::Option* names_output(CLI::Option* option);

struct NamedFile {
  std::string option;  ///< "--html" or "TRACE".
  std::string path;
};

class CommandFiles {
 public:
  /// Throws Error if an output is an input or another output, even by another path.
  void read_command_line(const CLI::App& command);

  /// Adds outputs that only the command itself knows. If the option of an output was taken for an
  /// input, that input is dropped. Throws Error as read_command_line() does; REQUIRES: none of
  /// these files has been written yet.
  void add_outputs(const std::vector<NamedFile>& outputs);

  /// Restricts read_command_line(): it then refuses every output, and every file outside the folder
  /// `root`. An empty `root` restricts nothing.
  void confine_to(const std::string& root) { root_ = root; }

 private:
  class Inputs;

  void check_root() const;

  /// Checks the outputs from number `first` on.
  void check(std::size_t first) const;

  std::vector<NamedFile> inputs_, outputs_;
  std::string root_;
};

}  // namespace foretrace
