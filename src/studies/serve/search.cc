// The search of `foretrace plan serve`: numbers of GPUs from the least on until something meets the
// SLO, and for each all layouts with the engine's own limits, then other limits where these miss
// it.
//
// A copy is left out if it misses the SLO with one request at a time: then requests wait for
// nothing. Prices of steps grow with their work, but for prompts shorter than the batch.

#include <algorithm>
#include <deque>
#include <fmt/core.h>
#include <map>
#include <optional>
#include <tuple>

#include "base/threads.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "foretrace/question/training.h"
#include "question/serve/asked.h"
#include "studies/serve/space.h"

namespace foretrace {
namespace {

/// So many requests are replayed at most, over all configurations: some tens of seconds.
constexpr std::size_t kMaxReplayedRequests = 2'000'000;
/// Limits of requests are powers of two from here on.
constexpr std::int64_t kMinSequences = 8;
/// Copies for prompts alone are tried in steps of this share of all copies.
constexpr std::int64_t kPromptShares = 8;
constexpr std::size_t kMaxFewer = 3;

struct Outcome {
  ServeCandidate candidate{};
  bool is_replayed = false;  ///< Otherwise its limits do not let it serve the load.
  ServingPoint typical{}, slower{};
  /// The largest share of a limit that a latency takes, typical and at the upper end.
  double share = 0, upper_share = 0;
  SloVerdict verdict = SloVerdict::misses;
  double cost = 0;
};

/// The engine's own limits stay unless others are better by more than the interval.
bool is_clearly_better(const Outcome& other, const Outcome& best) {
  if (!other.is_replayed || !best.is_replayed) return other.is_replayed;
  if (other.verdict != best.verdict) return other.verdict < best.verdict;
  if (best.verdict == SloVerdict::misses) return other.share < best.share;
  return other.upper_share < best.share;
}

bool is_same(const ServePlanRow& row, const ServePlanRow& first) {
  const auto meet = [](const auto& one, const auto& other) {
    return one.first <= other.second && other.first <= one.second;
  };
  const auto tokens = [](const ServePlanRow& one) {
    return std::pair(one.point.lower_output_tokens, one.point.upper_output_tokens);
  };
  if (row.verdict != first.verdict || row.gpus != first.gpus || !meet(tokens(row), tokens(first)))
    return false;
  for (std::size_t i = 0; i < row.figures.size(); ++i) {
    if (!meet(row.figures[i].interval, first.figures[i].interval)) return false;
  }
  return true;
}

/// Among the first and those that are the same within intervals: one whose cache is not narrower
/// than it need be, without prompts apart, like measured deployments.
void put_plainest_first(std::vector<ServePlanRow>& rows) {
  const auto plainness = [](const ServePlanRow& row) {
    return std::tuple(row.asked.cache != "bf16", row.asked.prefill_replicas > 0,
                      !row.point.is_covered);
  };
  auto best = rows.begin();
  for (auto row = rows.begin() + 1; row != rows.end(); ++row) {
    if (is_same(*row, rows.front()) && plainness(*row) < plainness(*best)) best = row;
  }
  std::rotate(rows.begin(), best, best + 1);
  for (auto row = rows.begin() + 1; row != rows.end(); ++row)
    row->is_same = is_same(*row, rows.front());
}

class Search {
 public:
  explicit Search(const ServePlanQuestion& question)
      : space_(question), most_replayed_(kMaxReplayedRequests / space_.requests) {
    const ServeQuestion& served = question.served;
    report_.model = served.model, report_.machine = served.machine, report_.engine = served.engine;
    report_.weights = served.weights, report_.load = load_text(space_.base.load);
    report_.most_gpus = space_.gpus.back();
    for (const SloPart& part : space_.base.slo)
      report_.slo += fmt::format("{}{} up to {}", report_.slo.empty() ? "" : ", ", part.name,
                                 to_text(part.limit));
    if (space_.price) report_.currency = space_.price->currency;
  }

  ServePlanReport run() {
    find_copies();
    check_capacity();
    for (std::size_t i = 0; i < space_.gpus.size() && !meets_; ++i) {
      for (std::size_t k = 0; k < space_.caches.size() && !meets_; ++k)
        search_count(space_.gpus[i], space_.caches[k]);
    }
    rank();
    return std::move(report_);
  }

 private:
  void find_copies() {
    std::vector<ServedCopy> all = space_.copies();
    report_.placements = all.size();
    std::vector<std::string> unfit(all.size());
    std::vector<Outcome> alone(all.size());
    on_all_cores(all.size(), [&](std::size_t i) {
      unfit[i] = space_.fit(all[i]);
      if (unfit[i].empty()) alone[i] = outcome_alone(all[i]);
    });
    std::string example;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (unfit[i].empty()) {
        add_copy(all[i], std::move(alone[i]));
        continue;
      }
      if (example.empty())
        example = fmt::format("tensor {}: {}", all[i].placement.tensor, unfit[i]);
      leave_out("do not fit, or cannot run a request, as " + example, "placement");
    }
    if (copies_.empty())
      throw Error(fmt::format(
          "--gpus: {} fits on no number of GPUs of {} up to {}, nor with tensor {}: {}; more or "
          "larger GPUs or narrower weights would help",
          space_.base.model.name, report_.machine, report_.most_gpus, all.back().placement.tensor,
          unfit.back()));
    if (std::ranges::all_of(copies_, &ServedCopy::is_too_slow))
      refuse(
          ", even with one request at a time; only faster GPUs, narrower weights or shorter "
          "requests would help");
    nearest_.reset();
  }

  Outcome outcome_alone(const ServedCopy& copy) const {
    Outcome alone{.candidate = {.copy = &copy, .tokens = std::ranges::max(copy.tokens)}};
    alone.typical = space_.served_by(alone.candidate).alone();
    alone.share = space_.share_of(alone.typical);
    return alone;
  }

  void add_copy(const ServedCopy& copy, Outcome alone) {
    alone.candidate.copy = &copies_.emplace_back(copy);
    if (alone.share <= 1) return;
    copies_.back().is_too_slow = true;
    note_nearest(alone);
    leave_out("too slow even for one request at a time", "placement");
  }

  void check_capacity() const {
    double most = 0;
    for (const ServedCopy& copy : copies_) {
      const std::int64_t room = copy.is_too_slow ? 0 : space_.gpus.back() / copy.devices();
      most = std::max(most, copy.capacity * static_cast<double>(room));
    }
    if (space_.base.load.rate > most)
      throw Error(fmt::format(
          "--load: rate must be below the capacity of {}, about {} requests a second, got {}; more "
          "GPUs or shorter prompts and answers would help",
          counted(report_.most_gpus, "GPU"), to_fixed(most, most < 10 ? 2 : 0),
          to_text(space_.base.load.rate)));
  }

  Outcome outcome_of(const ServeCandidate& candidate) const {
    Outcome outcome{.candidate = candidate};
    try {
      const serve::ServedDeployment served = space_.served_by(candidate);
      if (space_.base.load.rate > served.capacity()) return outcome;
      outcome.typical = served.typical(), outcome.is_replayed = true;
      outcome.share = space_.share_of(outcome.typical);
      outcome.cost = space_.cost_of(outcome.typical);
      if (outcome.share > 1) return outcome;
      outcome.slower = served.moved(1);
      for (const SloPart& part : space_.base.slo) {
        const Nanoseconds end =
            served.end_of(outcome.typical, outcome.slower, part.latency, part.statistic, 1);
        outcome.upper_share =
            std::max(outcome.upper_share,
                     static_cast<double>(end.count()) / static_cast<double>(part.limit.count()));
      }
      outcome.verdict = outcome.upper_share <= 1 ? SloVerdict::meets : SloVerdict::typically;
    } catch (const Error&) {
      // These limits do not let a request run.
    }
    return outcome;
  }

  std::vector<Outcome> replayed(std::vector<ServeCandidate> candidates) {
    const std::size_t left = most_replayed_ - report_.replayed;
    if (candidates.size() > left) {
      leave_out(fmt::format("beyond the bound of {} replays", grouped(most_replayed_)),
                "configuration", candidates.size() - left);
      candidates.resize(left);
    }
    report_.replayed += candidates.size();
    std::vector<Outcome> outcomes(candidates.size());
    on_all_cores(candidates.size(),
                 [&](std::size_t i) { outcomes[i] = outcome_of(candidates[i]); });
    return outcomes;
  }

  /// Each way to use so many GPUs, with the engine's own limits.
  std::vector<ServeCandidate> layouts_of(std::int64_t gpus, const std::string& cache) {
    std::vector<ServeCandidate> layouts;
    for (const ServedCopy& copy : copies_) {
      if (copy.is_too_slow || copy.cache != cache || gpus % copy.devices() != 0) continue;
      const std::int64_t copies = gpus / copy.devices();
      const std::int64_t step = (copies + kPromptShares - 1) / kPromptShares;
      if (space_.base.load.rate > copy.capacity * static_cast<double>(copies)) {
        leave_out("capacity below the load", "layout");
        continue;
      }
      for (std::int64_t prefill = 0; prefill < copies; prefill += step)
        layouts.push_back({&copy, copies - prefill, prefill, copy.tokens.front()});
    }
    return layouts;
  }

  /// Other limits of the engine. Those on requests that are never reached change nothing.
  std::vector<ServeCandidate> limits_of(const Outcome& own) const {
    std::vector<ServeCandidate> all;
    const std::int64_t reached =
        own.is_replayed && space_.given.max_sequences == 0
            ? std::min(own.typical.running_peak, space_.base.engine.max_sequences)
            : 0;
    for (const std::int64_t tokens : own.candidate.copy->tokens) {
      ServeCandidate candidate = own.candidate;
      candidate.tokens = tokens;
      if (tokens != own.candidate.tokens) all.push_back(candidate);
      for (std::int64_t most = kMinSequences; most < reached; most *= 2) {
        candidate.sequences = most;
        all.push_back(candidate);
      }
    }
    return all;
  }

  void search_count(std::int64_t gpus, const std::string& cache) {
    std::vector<Outcome> bests = replayed(layouts_of(gpus, cache));
    std::vector<ServeCandidate> others;
    std::vector<std::size_t> layouts;
    for (std::size_t i = 0; i < bests.size(); ++i) {
      if (bests[i].verdict == SloVerdict::meets) continue;
      for (const ServeCandidate& other : limits_of(bests[i]))
        others.push_back(other), layouts.push_back(i);
    }
    const std::vector<Outcome> outcomes = replayed(std::move(others));
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (is_clearly_better(outcomes[i], bests[layouts[i]])) bests[layouts[i]] = outcomes[i];
    }
    for (const Outcome& best : bests) {
      if (best.is_replayed) add_best(best);
    }
  }

  void add_best(const Outcome& best) {
    note_nearest(best);
    const auto [other, is_new] = by_count_.try_emplace(best.candidate.gpus(), best);
    if (!is_new &&
        std::tie(best.verdict, best.share) < std::tie(other->second.verdict, other->second.share))
      other->second = best;
    if (best.verdict == SloVerdict::misses) return;
    found_.push_back(best);
    meets_ |= best.verdict == SloVerdict::meets;
  }

  void note_nearest(const Outcome& outcome) {
    if (!nearest_ || outcome.share < nearest_->share) nearest_ = outcome;
  }
  void leave_out(const std::string& why, const char* what, std::size_t count = 1) {
    const auto same = std::ranges::find(report_.left_out, why, &ServePlanReport::LeftOut::why);
    if (same != report_.left_out.end())
      same->count += count;
    else
      report_.left_out.push_back({why, what, count});
  }

  [[noreturn]] void refuse(const std::string& what_helps) const {
    if (!nearest_)
      throw Error(
          "--gpus: must have a number that copies of the model fill, with a capacity above the "
          "load; none of those given has");
    const SloPart& part = *std::ranges::max_element(space_.base.slo, {}, [&](const SloPart& one) {
      return space_.share_of(nearest_->typical, one);
    });
    throw Error(fmt::format(
        "--slo: no configuration of up to {} meets it: {}, the nearest, has a {} of {}, {} times "
        "its limit of {}{}",
        counted(report_.most_gpus, "GPU"), space_.words_of(nearest_->candidate), part.name,
        to_text(nearest_->typical.latency(part.latency)->*part.statistic),
        to_fixed(nearest_->share, 2), to_text(part.limit), what_helps));
  }

  ServePlanRow ranked_row(const Outcome& outcome) const {
    ServePlanRow row = space_.row_of(outcome.candidate, outcome.typical);
    row.verdict = outcome.verdict;
    row.point = space_.served_by(outcome.candidate).bounded(outcome.typical, outcome.slower);
    row.figures = row.point.slo;
    return row;
  }

  void rank() {
    if (found_.empty())
      refuse(report_.replayed < most_replayed_
                 ? "; more GPUs or a lower load would help"
                 : fmt::format("; the search ended at its bound of {} replays, and fewer numbers "
                               "for --gpus or --tensor would help",
                               grouped(most_replayed_)));
    std::ranges::stable_sort(found_, [](const Outcome& one, const Outcome& other) {
      const auto key = [](const Outcome& outcome) {
        return std::tuple(outcome.verdict, outcome.candidate.gpus(), outcome.cost,
                          outcome.upper_share);
      };
      return key(one) < key(other);
    });
    const std::size_t top = std::min(found_.size(), space_.question.top);
    if (found_.size() > top) leave_out("ranked lower", "configuration", found_.size() - top);
    report_.ranked.resize(top);
    on_all_cores(top, [&](std::size_t i) { report_.ranked[i] = ranked_row(found_[i]); });
    put_plainest_first(report_.ranked);
    add_fewer();
    describe(report_.ranked.front().asked);
  }

  /// The best with each of the next smaller numbers of GPUs that are not ranked.
  void add_fewer() {
    for (const ServePlanRow& row : report_.ranked) by_count_.erase(row.gpus);
    for (auto one = by_count_.rbegin(); one != by_count_.rend(); ++one) {
      if (one->first >= report_.ranked.front().gpus || report_.fewer.size() == kMaxFewer) continue;
      report_.fewer.push_back(space_.row_of(one->second.candidate, one->second.typical));
      report_.fewer.back().verdict = one->second.verdict;
    }
  }

  void describe(const ServeQuestion& first) {
    report_.command = command_of(first);
    add_launch(space_.base.platform.per_node, space_.base.model.experts > 0, report_);
    report_.assumptions = space_.assumptions;
    add_serve_assumptions(first, deployment_of(first), report_.assumptions);
    report_.assumptions.emplace_back(
        "intervals of percentiles are as wide as those of means: percentiles were not compared "
        "with measurements");
    if (first.cache == "fp8" && space_.caches.size() > 1)
      report_.assumptions.emplace_back(
          "a cache in fp8 changes answers of the model a little; --cache bf16 leaves it out");
  }

  ServeSpace space_;
  ServePlanReport report_;
  std::size_t most_replayed_;
  std::deque<ServedCopy> copies_;  ///< Those that fit.
  std::vector<Outcome> found_;
  std::map<std::int64_t, Outcome> by_count_;  ///< The best, by GPUs.
  std::optional<Outcome> nearest_;
  bool meets_ = false;  ///< Something does.
};

}  // namespace

ServePlanReport plan_serve(const ServePlanQuestion& question) { return Search(question).run(); }

}  // namespace foretrace
