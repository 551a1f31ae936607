#include "question/common/forms.h"
#include "studies/allocate/allocate.h"

namespace foretrace {
namespace {

class PlanAllocate final : public Question {
 public:
  void describe(Fields& fields) override {
    fields.as({.value = "JOBS", .is_positional = true, .is_required = true})
        .path("jobs", question_.jobs, "The elastic jobs: a JSON file");
    fields.optional_integer("nodes", question_.nodes, "Idle nodes, for one decision", 0);
    fields.path("events", question_.events,
                "Replay nodes that come and go: CSV with the columns time_s, joined and left, or "
                "BFTrainer's log (.pkl or .tar.gz), of which no code is run");
    fields.path("sacct", question_.sacct,
                "Replay the nodes that jobs of Slurm left idle: sacct -P with JobID, Start, End "
                "and NodeList");
    fields.path("swf", question_.swf,
                "Replay the nodes that jobs left idle: a log in Standard Workload Format");
    fields.as({.value = "WORD|FORMULA"})
        .text("objective", question_.objective,
              "throughput, speedup (over one node), deadline or price; or a formula of nodes, "
              "rate, one (the rate on one node), value, samples, done and left (seconds to the "
              "deadline): \"min(rate, 5000) * value\"");
    fields.as({.value = "WORD"})
        .text("solver", question_.solver,
              "knapsack (exact), milp (the same by glpk) or equal (equal shares)");
    fields.time("ahead", question_.ahead, "Time within which a decision must pay off");
    fields.integer("at_once", at_once_, "Jobs that may run at once in a replay", 1, 100'000);
  }

  std::string remarks() const override {
    return "JOBS is JSON: {\"jobs\": [{\"name\": \"a\", \"count\": 10, \"least\": 1, \"most\": 64, "
           "\"up\": \"18s\", \"down\": \"12s\", \"samples\": 1e8, \"rates\": {\"1\": 2831, \"8\": "
           "20379}}]}. A job may also have nodes (how many it has), arrival, every, value and "
           "deadline; rates are samples per second by number of nodes, or come from model, machine "
           "and global_batch.\n"
           "  foretrace plan allocate jobs.json --nodes 8\n"
           "  sacct -P -o JobID,Start,End,NodeList > log; foretrace plan allocate jobs.json "
           "--sacct log";
  }

  std::vector<Form> forms() const override { return forms_of<AllocationReport>(); }

  std::unique_ptr<Answer> ask(Session&) override {
    question_.at_once = static_cast<std::size_t>(at_once_);
    return answer_of(allocate(question_));
  }

 private:
  AllocateQuestion question_;
  std::int64_t at_once_ = static_cast<std::int64_t>(AllocateQuestion{}.at_once);
};

}  // namespace

std::unique_ptr<Question> make_plan_allocate() { return std::make_unique<PlanAllocate>(); }

}  // namespace foretrace
