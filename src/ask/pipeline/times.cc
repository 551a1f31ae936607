#include "ask/pipeline/times.h"

#include <fmt/core.h>
#include <numeric>
#include <sstream>

#include "foretrace/error.h"

namespace foretrace {
namespace {

/// Reads the numbers of "7+7+6+6". Throws Error unless all are whole and at least 1.
std::vector<double> read_layers(const std::string& text) {
  std::vector<double> layers;
  std::istringstream numbers(text);
  for (std::string number; std::getline(numbers, number, '+');) {
    const bool is_whole = !number.empty() && number.size() < 7 &&
                          number.find_first_not_of("0123456789") == std::string::npos;
    layers.push_back(is_whole ? std::stod(number) : 0);
    if (layers.back() < 1)
      throw Error(fmt::format(
          "layers_per_stage: must be whole numbers of at least 1, as in 7+7+6+6, got '{}'", text));
  }
  return layers;
}

}  // namespace

void PipelineTimes::describe(Fields& fields) {
  fields.time("forward", forward_, "Forward pass of a micro-batch on a rank", 0ns);
  fields.optional_time("backward", backward_,
                       "Backward pass; if weight is given, only the input gradient. By default "
                       "twice forward, or as long as forward if weight is given",
                       0ns);
  fields.optional_time("weight", weight_,
                       "Weight gradient, which unsplit schedules run with the input gradient; by "
                       "default part of backward, half of it if the schedule splits it",
                       0ns);
  fields.time("communication", communication_, "A send to the next or previous stage", 0ns);
  fields.time("recompute", recompute_, "Repeated forward pass before a backward pass", 0ns);
  fields.time("all_reduce", all_reduce_, "All-reduce of the gradients of a rank", 0ns);
  fields.time("update", update_, "Update of the weights of a rank", 0ns);
  fields.number("overlap", overlap_,
                "Share of time that overlapped forward and backward passes save", 0, 0.99);
  fields.bytes("activations", activations_,
               "Activations kept for a micro-batch until its input gradient");
  fields.bytes("activations_for_weight", activations_for_weight_,
               "Part of the activations kept until its weight gradient");
  fields.bytes("parameters", parameters_, "One version of the weights of a rank");
  fields.optional_integer("layers", layers_,
                          "Layers of the model, to check that all stages get the same number", 1);
  fields.text("layers_per_stage", layers_of_stages_,
              "Layers of each stage, if stages are uneven: 7+7+6+6");
}

std::vector<double> PipelineTimes::shares(const Schedule& schedule) const {
  const auto stages = static_cast<std::size_t>(schedule.stages);
  if (layers_of_stages_.empty()) {
    if (layers_ && *layers_ % schedule.stages != 0)
      throw Error(
          fmt::format("layers: must be a multiple of the {} stages of the model, got {}; "
                      "layers_per_stage=7+7+6+6 makes uneven stages",
                      schedule.stages, *layers_));
    return std::vector<double>(stages, 1);
  }
  std::vector<double> shares = read_layers(layers_of_stages_);
  if (shares.size() != stages)
    throw Error(
        fmt::format("layers_per_stage: must have {} numbers, got {}", stages, shares.size()));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (layers_ && static_cast<double>(*layers_) != sum)
    throw Error(fmt::format("layers_per_stage: must have {} layers in all, got {}", *layers_,
                            to_text(sum)));
  for (double& share : shares) share *= static_cast<double>(stages) / sum;
  return shares;
}

void PipelineTimes::set_backward(StageCosts& rank, const Schedule& schedule,
                                 std::vector<std::string>& assumptions) const {
  if (weight_) {
    rank.weight_gradient = *weight_;
    rank.input_gradient = backward_.value_or(forward_);
    if (!backward_) assumptions.push_back("an input gradient takes as long as a forward pass");
    return;
  }
  const Nanoseconds backward = backward_.value_or(2 * forward_);
  if (!backward_) assumptions.push_back("a backward pass takes twice as long as a forward pass");
  if (schedule.splits_backward) {
    rank.weight_gradient = backward / 2;
    assumptions.push_back(
        "half of a backward pass is its weight gradient; weight=TIME changes that");
  }
  rank.input_gradient = backward - rank.weight_gradient;
}

PipelineCosts PipelineTimes::costs_for(const Schedule& schedule,
                                       std::vector<std::string>& assumptions) const {
  if (activations_for_weight_ > activations_)
    throw Error(
        fmt::format("activations_for_weight: must not be more than activations, got {} of {}",
                    to_text(activations_for_weight_), to_text(activations_)));
  StageCosts rank{.forward = forward_, .recompute = recompute_};
  set_backward(rank, schedule, assumptions);
  PipelineCosts costs{.stages = {}, .overlap = overlap_};
  for (const double relative : shares(schedule)) {
    const double share = relative / schedule.chunks;
    costs.stages.push_back({.forward = scaled(rank.forward, share),
                            .input_gradient = scaled(rank.input_gradient, share),
                            .weight_gradient = scaled(rank.weight_gradient, share),
                            .recompute = scaled(rank.recompute, share),
                            .send_forward = communication_,
                            .send_backward = communication_,
                            .all_reduce = scaled(all_reduce_, share),
                            .update = scaled(update_, share),
                            .activations = scaled(activations_, share),
                            .activations_for_weight = scaled(activations_for_weight_, share),
                            .parameters = scaled(parameters_, share)});
  }
  if (communication_ > 0ns) {
    assumptions.push_back("sends do not occupy their ranks");
    if (sends_queue(schedule, costs))
      assumptions.push_back("sends from one rank to another run one after the other");
  }
  return costs;
}

}  // namespace foretrace
