#include <cstdio>
#include <iostream>
#include <random>

#include "base/shown.h"
#include "cli/options/outputs.h"
#include "cli/options/progress.h"
#include "cli/options/trace_part.h"
#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/machine.h"
#include "question/common/reading.h"

namespace foretrace {
namespace {

constexpr std::size_t kExamples = 8;

std::string random_salt() {
  std::random_device device;
  std::string salt;
  for (int i = 0; i < 8; ++i) salt += std::to_string(device()) + ".";
  return salt;
}

class AnonymizeCommand final : public Command {
 public:
  void describe(Fields& fields) override {
    describe_trace(fields, from_);
    out_.describe(fields);
    fields.as({.value = "WORD"})
        .text("salt", settings_.salt,
              "Salt for the replacements: the same salt replaces the same text in the same way, so "
              "that two traces stay comparable. Anyone who knows the salt can guess names. Random "
              "by default");
    fields.flag("drop_shapes", settings_.drop_shapes,
                "Also leave out sizes, types and values of op arguments, which are kept by default "
                "(as are process, thread and rank numbers and device names)");
    fields.as({.value = "WORD"})
        .texts("keep", settings_.keep, "A name, or part of a path, to keep as it is");
    fields.flag("keep_time", settings_.keep_time, "Keep the date and time of the recording");
    fields.flag("list_kept", lists_kept_, "Print every text that was kept");
    reading_.describe_part(fields);
    fields.flag("quiet", is_quiet_, "Show no progress and no summary");
    reading_.describe(fields);
  }

  void run(Invocation& invocation) override {
    out_.check("anonymize");
    const Part part = reading_.part();
    if (settings_.salt.empty()) settings_.salt = random_salt();
    settings_.kernel_words = class_words;
    AnonymizedTexts texts;
    {
      const Progress progress("anonymizing " + from_, is_quiet_);
      std::vector<Trace> traces = reading_.read_whole(from_);
      within(from_, [&] { cut_to(part, traces); });
      for (Trace& trace : traces) trace = anonymize(trace, settings_, texts);
      for (const Output& output : out_.output_files(from_, traces, invocation))
        within(from_, [&] { output.exporter->write(*output.trace, output.path); });
    }
    if (!is_quiet_) summarize(texts);
    if (lists_kept_) {
      for (const std::string& text : texts.kept) invocation.out << shown(text) << '\n';
    }
  }

 private:
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

  std::string from_;
  OutputChoice out_;
  Anonymization settings_;
  bool lists_kept_ = false, is_quiet_ = false;
  Reading reading_;
};

}  // namespace

std::unique_ptr<Command> make_anonymize_command() { return std::make_unique<AnonymizeCommand>(); }

}  // namespace foretrace
