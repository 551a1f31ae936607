#include <algorithm>

#include "import/scan/json_scan.h"
#include "import/torch_memory/torch_memory.h"

namespace foretrace {

namespace {

/// Limit on the text of all stacks, for each byte of the file. It is seldom longer than the file.
constexpr std::size_t kTextPerByte = 16;
constexpr std::size_t kMinBudget = std::size_t{16} << 20;

/// Replaces ';' by ',', because ';' separates frames, and a line break by a blank.
std::string cleaned(std::string_view text) {
  std::string out = valid_text(text);
  std::replace(out.begin(), out.end(), ';', ',');
  std::replace(out.begin(), out.end(), '\n', ' ');
  return out;
}

}  // namespace

std::string valid_text(std::string_view text) {
  std::int64_t invalid = 0;
  return valid_text(text.substr(0, 1U << 20U), invalid);
}

SnapshotStacks::SnapshotStacks(const PlainData& data, Names& names, std::size_t file_size)
    : data_(data), names_(names), budget_(kMinBudget + kTextPerByte * file_size) {}

NameId SnapshotStacks::stack(PlainValue frames) {
  const auto items = data_.items(frames);
  if (!frames.is_list() || items.empty()) return NameId{};
  const auto [found, is_new] = stacks_.try_emplace(frames.index());
  if (!is_new) return found->second;
  std::string text;
  for (const PlainValue item : items) {
    const std::string_view next = frame(item);
    spend(next.size() + 1);
    if (budget_ == 0) {
      ++left_out_;
      return NameId{};
    }
    if (!text.empty()) text += ';';
    text += next;
  }
  return found->second = names_.intern(text);
}

void SnapshotStacks::spend(std::size_t bytes) { budget_ -= std::min(bytes, budget_); }

/// The text of a frame. Empty once the budget is spent.
std::string_view SnapshotStacks::frame(PlainValue frame) {
  if (budget_ == 0) return {};
  const auto [found, is_new] = frames_.try_emplace(frame.bits);
  if (is_new) {
    found->second = frame_text(frame);
    spend(found->second.size());
  }
  return found->second;
}

std::string SnapshotStacks::frame_text(PlainValue frame) const {
  // PyTorch writes only dicts. If a tool writes texts instead, they are shown unchanged.
  if (!frame.is_dict()) return cleaned(data_.text(frame));
  const auto line = data_.integer(data_.find(frame, "line"));
  std::string text = cleaned(data_.text(data_.find(frame, "filename")));
  text += ':';
  text += std::to_string(line.value_or(0));
  text += ' ';
  return text + cleaned(data_.text(data_.find(frame, "name")));
}

}  // namespace foretrace
