// Writes facts about the process to the spool: its rank, devices, command line and host.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "collect/cupti/recorder.h"
#include "foretrace/version.h"

namespace foretrace::collect {

namespace {

/// Returns the first of these variables that is set, since each launcher has its own, or nullptr.
const char* first_set(std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0') return value;
  }
  return nullptr;
}

/// The command line, with blanks between its words. It is read on the file thread.
struct CommandLine {
  std::array<char, 2048> room;
  std::size_t size;

  void read() {
    const int file = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    const ssize_t found = ::read(file, room.data(), room.size());
    ::close(file);
    size = found < 0 ? 0 : static_cast<std::size_t>(found);
    while (size > 0 && room[size - 1] == '\0') --size;
    std::replace(room.begin(), room.begin() + static_cast<std::ptrdiff_t>(size), '\0', ' ');
  }
};

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
  static CommandLine command;
  const bool known =
      writer_.files.run([] {}, [](void* line) { static_cast<CommandLine*>(line)->read(); },
                        &command, FileThread::Timeout::program);
  if (known) writer_.write_fact("command", std::string_view(command.room.data(), command.size));
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) fact("host", host.data());
}

}  // namespace foretrace::collect
