#pragma once

// Runs the real program as a user runs it.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "support/folder.h"
#include "support/tested.h"

namespace foretrace {

struct Outcome {
  int exit_code = -1;
  std::string out, err;
};

/// Runs `arguments` as a shell reads them, in the folder of the sources. `before` stands in front
/// of the program, and `input` goes to its standard input. The program runs without a cache, and
/// without anything of the caller's environment that could change the answer.
inline Outcome foretrace_run(const std::string& arguments, const std::string& before = "",
                             const std::string& input = "") {
  const Folder folder;
  const std::string command =
      "cd '" FORETRACE_SOURCE_DIR "' && XDG_CACHE_HOME='" + (folder / "cache") + "' " + before +
      " '" + tested_program(FORETRACE_BINARY) + "' " + arguments + " >'" + (folder / "out") +
      "' 2>'" + (folder / "err") + "' <'" + folder.write("in", input) + "'";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents_of(folder / "out"),
          contents_of(folder / "err")};
}

}  // namespace foretrace
