#include <fmt/core.h>
#include <fstream>
#include <iostream>

#include "cli/options/allocator_option.h"
#include "cli/options/command.h"
#include "cli/options/options.h"
#include "cli/options/progress.h"
#include "foretrace/allocator.h"
#include "foretrace/ask/examine.h"
#include "foretrace/error.h"
#include "foretrace/report.h"

namespace foretrace {
namespace {

// "foretrace memory replay FILE": runs a program of a few lines on the caching allocator.

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

void add_memory_replay(CLI::App& command, Session& session) {
  add_command<MemoryReplayCommand>(command, session);
}

Bandwidth positive_bandwidth(std::string_view text) {
  const Bandwidth bandwidth = parse_bandwidth(text);
  if (bandwidth.bytes_per_second <= 0)
    throw Error(fmt::format("must be more than 0, got '{}'", text));
  return bandwidth;
}

struct MemoryCommand {
  std::string trace, host_bandwidth;
  MemoryQuestion question;
  std::int64_t top = 10;
  AllocatorOption allocator;
  FormatOption format{{"text", "json", "csv"}, "text"};
  OutputOption output, html;
  ReadingOptions reading;
  bool quiet = false;
  const CLI::App* app = nullptr;

  void add_to(CLI::App& command) {
    app = &command;
    command.add_option("TRACE", trace,
                       "A trace or memory snapshot, or a folder with those of all ranks");
    command
        .add_option("--device", question.device,
                    "The device to describe; by default the one with the highest peak")
        ->type_name("NUMBER");
    command
        .add_option("--step", question.step,
                    "Only this step, by the number in its name; by default the whole recording")
        ->type_name("NUMBER");
    command.add_option("--top", top, "Rows in each list")
        ->type_name("COUNT")
        ->capture_default_str();
    command
        .add_option("--host-bandwidth", host_bandwidth,
                    "Bandwidth of copies to the host and back: 24GB/s, or 6.3GB/s,6.4GB/s for the "
                    "two directions; by default that of the device")
        ->type_name("RATE");
    allocator.add_to(command);
    html.add_to(command, "--html",
                "Also write a page that draws all blocks over time; it works offline");
    format.add_to(command);
    command.add_flag("--quiet", quiet, "Show no progress");
    output.add_to(command);
    reading.add_part_to(command);
    reading.add_execution_trace_to(command);
    reading.add_to(command);
  }

  void read_bandwidth() {
    if (host_bandwidth.empty()) return;
    within("--host-bandwidth", [&] {
      const std::size_t comma = host_bandwidth.find(',');
      question.out = positive_bandwidth(host_bandwidth.substr(0, comma));
      question.in = comma == std::string::npos
                        ? question.out
                        : positive_bandwidth(host_bandwidth.substr(comma + 1));
    });
  }

  void run(Session& session) {
    if (!app->get_subcommands().empty()) return;  // `memory replay` has answered.
    if (trace.empty()) throw Error("memory: which TRACE? See `foretrace help memory`");
    format.check();
    if (top < 1) throw Error("--top: must be at least 1, got " + std::to_string(top));
    question.top = static_cast<std::size_t>(top);
    read_bandwidth();
    AllocatorSettings settings;
    allocator.set(settings);
    warn_if_large(trace, reading.options(), quiet);
    const ExaminedMemory examined = [&] {
      const Progress progress("examining " + trace, quiet);
      return examine_memory(trace, question, settings, reading.options());
    }();
    if (!html.path.empty()) {
      html.write(session, [&](std::ostream& out) {
        write_memory_html(examined.report, examined.graph, out);
      });
    }
    output.write(session, [&](std::ostream& out) { write(examined.report, examined.graph, out); });
    session.exit_code = fits(examined.report) ? kAnswered : kCheckFailed;
  }

  void write(const MemoryReport& report, const Graph& graph, std::ostream& out) const {
    if (format.chosen == "json") return print_answer(report, out);
    if (format.chosen == "csv") return write_memory_csv(report, graph, out);
    write_memory_text(report, out);
  }
};

}  // namespace

void add_memory(CLI::App& command, Session& session) {
  add_command<MemoryCommand>(command, session);
  add_memory_replay(
      *command.add_subcommand("replay",
                              "Simulate a few lines of malloc and free on the caching allocator"),
      session);
}

}  // namespace foretrace
