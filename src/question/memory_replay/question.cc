#include <fmt/core.h>
#include <fstream>
#include <iostream>

#include "foretrace/allocator.h"
#include "foretrace/answer/memory.h"
#include "foretrace/error.h"
#include "question/common/changes.h"
#include "question/common/forms.h"

namespace foretrace {
namespace {

struct ReplayedProgram {
  AllocatorProgram program;
  AllocatorOutcome outcome;
};

/// A refused request is one of the program's.
void complete(ReplayedProgram& one) {
  if (one.outcome.out_of_memory) one.outcome.out_of_memory->handle = 0;
}
Document document_of(const ReplayedProgram& one) { return document_of(one.program, one.outcome); }
nlohmann::ordered_json to_json(const ReplayedProgram& one) {
  return to_json(one.program, one.outcome);
}

class MemoryReplayed final : public Question {
 public:
  void describe(Fields& fields) override {
    fields.as({.value = "FILE", .is_positional = true, .is_required = true})
        .path("file", file_,
              "File with one step per line: malloc a 12MiB [stream=1], free a, record a stream=2, "
              "sync [stream=2], empty_cache; before them limit 16GB, set max_split_size=200MiB. - "
              "reads standard input");
    allocator_.describe(fields);
  }

  std::vector<Form> forms() const override { return forms_of<ReplayedProgram>(); }

  std::unique_ptr<Answer> ask(Session&) override {
    AllocatorProgram program = read();
    allocator_.set(program.settings);  // Overrides the settings in the file.
    AllocatorOutcome outcome = run_allocator_program(program);
    const ExitCode code = outcome.out_of_memory ? kCheckFailed : kAnswered;
    return answer_of(ReplayedProgram{std::move(program), std::move(outcome)}, code);
  }

 private:
  AllocatorProgram read() const {
    if (file_ == "-")
      return within("standard input", [] { return read_allocator_program(std::cin); });
    std::ifstream in(file_, std::ios::binary);
    if (!in) throw Error(fmt::format("cannot open '{}'", file_));
    return within(file_, [&] { return read_allocator_program(in); });
  }

  std::string file_;
  AllocatorChoice allocator_;
};

}  // namespace

std::unique_ptr<Question> make_memory_replay() { return std::make_unique<MemoryReplayed>(); }

}  // namespace foretrace
