#include <cstdio>
#include <iostream>
#include <random>

#include "base/shown.h"
#include "cli/options/options.h"
#include "cli/options/outputs.h"
#include "cli/options/progress.h"
#include "cli/options/trace_part_option.h"
#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/machine.h"

namespace foretrace {
namespace {

constexpr std::size_t kExamples = 8;

std::string random_salt() {
  std::random_device device;
  std::string salt;
  for (int i = 0; i < 8; ++i) salt += std::to_string(device()) + ".";
  return salt;
}

struct AnonymizeCommand {
  std::string from;
  OutputChoice out;
  TracePartOption part;
  Anonymization settings;
  bool lists_kept = false;
  bool quiet = false;
  ReadingOptions reading;

  void add_to(CLI::App& command) {
    add_trace(command, from);
    out.add_to(command);
    command
        .add_option("--salt", settings.salt,
                    "Salt for the replacements: the same salt replaces the same text in the same "
                    "way, so that two traces stay comparable. Anyone who knows the salt can guess "
                    "names. Random by default")
        ->type_name("TEXT");
    command.add_flag("--drop-shapes", settings.drop_shapes,
                     "Also leave out sizes, types and values of op arguments, which are kept by "
                     "default (as are process, thread and rank numbers and device names)");
    command.add_option("--keep", settings.keep, "A name, or part of a path, to keep as it is")
        ->type_name("WORD")
        ->allow_extra_args(false);
    command.add_flag("--keep-time", settings.keep_time, "Keep the date and time of the recording");
    command.add_flag("--list-kept", lists_kept, "Print every text that was kept");
    part.add_to(command);
    command.add_flag("--quiet", quiet, "Show no progress and no summary");
    reading.add_to(command);
  }

  void run(Session& session) const {
    out.check("anonymize");
    part.check();
    Anonymization chosen = settings;
    if (chosen.salt.empty()) chosen.salt = random_salt();
    chosen.kernel_words = class_words;
    AnonymizedTexts texts;
    {
      const Progress progress("anonymizing " + from, quiet);
      std::vector<Trace> traces = import_all(from, reading.options());
      within(from, [&] { part.apply(traces); });
      for (Trace& trace : traces) trace = anonymize(trace, chosen, texts);
      for (const Output& output : out.output_files(from, traces, session))
        within(from, [&] { output.exporter->write(*output.trace, output.path); });
    }
    if (!quiet) summarize(texts);
    if (lists_kept) {
      for (const std::string& text : texts.kept) session.out << shown(text) << '\n';
    }
    session.exit_code = kAnswered;
  }

  static void summarize(const AnonymizedTexts& texts) {
    std::cerr << "replaced " << texts.hidden.size() << " texts; kept " << texts.kept.size();
    std::size_t examples = 0;
    // Spread over the alphabet.
    const std::size_t stride = texts.kept.size() / kExamples + 1;
    std::size_t i = 0;
    for (const std::string& text : texts.kept) {
      if (i++ % stride != 0) continue;
      std::cerr << (examples++ == 0 ? ", such as \"" : ", \"") << shown(text.substr(0, 60)) << '"';
    }
    std::cerr << (texts.kept.empty() ? "" : " (--list-kept shows all)") << '\n';
  }
};

}  // namespace

void add_anonymize(CLI::App& command, Session& session) {
  add_command<AnonymizeCommand>(command, session);
}

}  // namespace foretrace
