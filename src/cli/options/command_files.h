#pragma once

// Which files a command reads and which it writes, according to its command line, so that no output
// ever replaces an input or another output. Commands need no code for this: an option whose values
// are called OUT (names_output()) is written; the value of every other option is read if it names a
// file. Other files that are read are
//
//     the files of a folder, and of folders in it   ranks/  ranks/node0/
//     archives and databases of which one part is   runs.tar.gz:rank0.json
//     named by settings of a step                   --with replace:donor=other.json
//     named by JSON files among these               {"trace": "../x.json"}, {"extends":
//     "base.json"}

#include <cstddef>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace foretrace {

/// Says that the values of an option are paths of files that are written.
CLI::Option* names_output(CLI::Option* option);

struct NamedFile {
  std::string option;  ///< "--html" or "TRACE".
  std::string path;
};

class CommandFiles {
 public:
  /// Throws Error if an output is an input or another output, under any name.
  void read_command_line(const CLI::App& command);

  /// More outputs, which only the command itself knows. An option that was taken for an input is
  /// one no more. Throws as well, before any of them is written.
  void add_outputs(const std::vector<NamedFile>& outputs);

  /// From now on the command line may name no output, and no file outside of this folder; nothing
  /// with an empty one.
  void stay_in(const std::string& root) { root_ = root; }

 private:
  class Inputs;

  void check_root() const;

  /// The outputs from number `first` on.
  void check(std::size_t first) const;

  std::vector<NamedFile> inputs_, outputs_;
  std::string root_;
};

}  // namespace foretrace
