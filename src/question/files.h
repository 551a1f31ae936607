#pragma once

// Which files a question reads and which it writes, according to its settings, so that no output
// ever replaces an input or another output, and that no file outside a folder is touched where that
// is forbidden. Questions need no code for this: values of settings that are written as OUT are
// outputs, and any other text is an input if it names a file. Inputs are also
//
//     files in a folder and its subfolders          ranks/  ranks/node0/
//     archives and databases with one part named    runs.tar.gz:rank0.json
//     files named by the settings of a step         --with replace:donor=other.json
//     files named by a JSON input, or by JSON       {"trace": "../x.json"}
//                                                   {"extends": "base.json"}

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/fields.h"

namespace foretrace {

struct NamedFile {
  std::string setting;  ///< As people know it: "--html", "TRACE".
  std::string path;
  bool is_trace = false;  ///< Paths in the text of a trace are not read.
  /// A program that is run. Foretrace does not read it, but must not overwrite it either.
  bool is_program = false;
};

class QuestionFiles {
 public:
  /// Adds the values of a setting. `value` is what the setting's values are called; see
  /// SettingForm.
  void add(std::string_view value, const std::string& setting,
           const std::vector<std::string>& texts);
  /// Adds the values of all settings.
  void add(Described& settings);

  /// Throws Error if an output is an input or another output, even by another path, or if a file is
  /// outside the root. Call it when all settings are added, before anything is read.
  void check() const;

  /// Adds outputs that no setting says. If the setting of an output was taken for an input, that
  /// input is dropped. Throws Error as check() does; REQUIRES: none of these files has been written
  /// yet.
  void add_outputs(const std::vector<NamedFile>& outputs);

  /// Then every output is refused, and every file outside the folder `root`. An empty `root`
  /// restricts nothing.
  void confine_to(const std::string& root) { root_ = root; }

 private:
  class Inputs;

  void check_root() const;

  /// Checks the outputs from number `first` on.
  void check(std::size_t first) const;

  std::vector<NamedFile> inputs_, outputs_;
  std::string root_;
};

/// The name of the values of a setting: "FILE", "a|b".
std::string value_name(const Setting& setting);

}  // namespace foretrace
