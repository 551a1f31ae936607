// What the spool says about the process besides what it did.

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "collect/recorder.h"
#include "foretrace/version.h"

namespace foretrace::collect {

namespace {

/// The first of the variables that is set; launchers differ.
const char* first_set(std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0') return value;
  }
  return nullptr;
}

/// The command line with blanks between its words.
std::string_view command_line(std::array<char, 2048>& room) {
  const int file = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t size = ::read(file, room.data(), room.size());
  ::close(file);
  if (size <= 0) return {};
  std::string_view text(room.data(), static_cast<std::size_t>(size));
  while (!text.empty() && text.back() == '\0') text.remove_suffix(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (room[i] == '\0') room[i] = ' ';
  }
  return text;
}

}  // namespace

void Recorder::write_facts() {
  const auto fact = [&](std::string_view key, const char* value) {
    if (value != nullptr) writer_.write_fact(key, value);
  };
  writer_.write_fact("collector", kVersion);
  fact("rank",
       first_set({"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}));
  fact("local_rank", first_set({"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}));
  fact("world_size", first_set({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}));
  fact("visible_devices", std::getenv("CUDA_VISIBLE_DEVICES"));
  fact("recorded", std::getenv("FORETRACE_RECORD"));
  std::array<char, 2048> room{};
  writer_.write_fact("command", command_line(room));
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) fact("host", host.data());
}

}  // namespace foretrace::collect
