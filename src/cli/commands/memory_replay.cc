#include "cli/commands/memory_replay.h"

#include <fmt/core.h>
#include <fstream>
#include <iostream>

#include "cli/options/allocator_option.h"
#include "cli/options/options.h"
#include "foretrace/allocator.h"
#include "foretrace/error.h"
#include "foretrace/report.h"

namespace foretrace {
namespace {

struct MemoryReplayCommand {
  std::string file;
  AllocatorOption allocator;
  FormatOption format{{"text", "json"}, "text"};
  OutputOption output;

  void add_to(CLI::App& command) {
    command
        .add_option("FILE", file,
                    "File with one step per line: malloc a 12MiB [stream=1], free a, record a "
                    "stream=2, sync [stream=2], empty_cache; before them limit 16GB, set "
                    "max_split_size=200MiB. - reads standard input")
        ->required();
    allocator.add_to(command);
    format.add_to(command);
    output.add_to(command);
  }

  void run(Session& session) const {
    format.check();
    AllocatorProgram program = read();
    allocator.set(program.settings);  // Options on the command line override the file.
    const AllocatorOutcome outcome = run_allocator_program(program);
    output.write(session, [&](std::ostream& out) {
      if (format.chosen == "json") return write_allocator_json(program, outcome, out);
      write_allocator_outcome(program, outcome, out);
    });
    session.exit_code = outcome.out_of_memory ? kCheckFailed : kAnswered;
  }

  AllocatorProgram read() const {
    if (file == "-")
      return within("standard input", [] { return read_allocator_program(std::cin); });
    std::ifstream in(file, std::ios::binary);
    if (!in) throw Error(fmt::format("cannot open '{}'", file));
    return within(file, [&] { return read_allocator_program(in); });
  }
};

}  // namespace

void add_memory_replay(CLI::App& command, Session& session) {
  add_command<MemoryReplayCommand>(command, session);
}

}  // namespace foretrace
