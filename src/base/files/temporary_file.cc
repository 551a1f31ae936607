#include "base/files/temporary_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fmt/core.h>
#include <random>
#include <system_error>

namespace foretrace {
namespace {

constexpr int kMaxTries = 100;
constexpr std::size_t kLongestName = 240;  ///< The whole name stays within NAME_MAX bytes.

/// A path that a signal handler may read. It does not change from `ready` until the slot is free
/// again.
struct Slot {
  enum State : int { free, claimed, ready };
  std::atomic<int> state = free;
  char path[PATH_MAX] = {};
};
static_assert(std::atomic<int>::is_always_lock_free);

/// A program usually writes one file at a time, with few threads. A file that finds no free slot is
/// deleted only by its object, not by signals.
std::array<Slot, 32> slots;

int claim_slot(const std::string& path) {
  if (path.size() >= PATH_MAX) return -1;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    int expected = Slot::free;
    if (!slots[i].state.compare_exchange_strong(expected, Slot::claimed)) continue;
    std::memcpy(slots[i].path, path.c_str(), path.size() + 1);
    slots[i].state = Slot::ready;
    return static_cast<int>(i);
  }
  return -1;
}

void free_slot(int& slot) {
  if (slot >= 0) slots[static_cast<std::size_t>(slot)].state = Slot::free;
  slot = -1;
}

std::string random_letters() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device device;
  std::uniform_int_distribution<std::size_t> letter(0, kLetters.size() - 1);
  std::string text;
  for (int i = 0; i < 8; ++i) text += kLetters[letter(device)];
  return text;
}

extern "C" void delete_temporaries_and_end(int signal) {
  for (const Slot& slot : slots) {
    if (slot.state == Slot::ready) ::unlink(slot.path);
  }
  ::raise(signal);  // SA_RESETHAND has restored the default action.
}

extern "C" void do_nothing(int) {}

}  // namespace

TemporaryFile::TemporaryFile(const std::string& folder, const std::string& name, ::mode_t rights) {
  const std::string begin =
      fmt::format("{}/.{}.", folder.empty() ? "." : folder, name.substr(0, kLongestName));
  for (int i = 0; i < kMaxTries; ++i) {
    path_ = begin + random_letters();
    // Claims the slot first, so that a signal never misses an existing file.
    slot_ = claim_slot(path_);
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, rights);
    if (descriptor_ >= 0) return;
    free_slot(slot_);
    if (errno != EEXIST) break;
  }
  throw std::system_error(errno, std::generic_category());
}

TemporaryFile::~TemporaryFile() {
  close();
  if (!path_.empty()) ::unlink(path_.c_str());
  free_slot(slot_);
}

bool TemporaryFile::close() {
  const int descriptor = descriptor_;
  descriptor_ = -1;
  return descriptor < 0 || ::close(descriptor) == 0;
}

bool TemporaryFile::replace(const std::string& path) {
  if (std::rename(path_.c_str(), path.c_str()) != 0) return false;
  free_slot(slot_);
  path_.clear();
  return true;
}

void delete_temporaries_on_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU}) {
    struct sigaction before = {};
    if (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
    struct sigaction action = {};
    action.sa_handler = delete_temporaries_and_end;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
  }
  // Installs a handler instead of ignoring the signal, because child processes would inherit that.
  struct sigaction action = {};
  action.sa_handler = do_nothing;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGXFSZ, &action, nullptr);
}

}  // namespace foretrace
